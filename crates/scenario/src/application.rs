//! The kinds of roles that are applications of a run.

use roles::RoleConfig;

/// An application: a role that sends or receives the data of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Application {
    /// A source of datagrams at a constant rate.
    ConstantRate,
    /// The receiver of datagrams at a port.
    Sink,
    /// The server of a bulk transfer. It sends data to each client that connects.
    BulkServer,
    /// The client of a bulk transfer. It connects to a server and reads until the end of the stream.
    BulkClient,
    /// The server that answers each request on a connection.
    RequestServer,
    /// The client that connects to a server, sends requests, and waits for the answers.
    RequestClient,
}

/// The prefix of the kinds of roles that the crate `apps` defines.
const PREFIX: &str = "apps/";

impl Application {
    const ALL: [Self; 6] = [
        Self::ConstantRate,
        Self::Sink,
        Self::BulkServer,
        Self::BulkClient,
        Self::RequestServer,
        Self::RequestClient,
    ];

    /// Returns the name of the application's role, as records have it, for example `sink`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConstantRate => "constant-rate",
            Self::Sink => "sink",
            Self::BulkServer => "bulk-server",
            Self::BulkClient => "bulk-client",
            Self::RequestServer => "request-server",
            Self::RequestClient => "request-client",
        }
    }

    /// Returns the application whose role has the name `role`, for example `sink`. `None` if the role is no
    /// application.
    pub fn named(role: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|application| application.name() == role)
    }

    /// Returns the application of a kind of role as written in a scenario, for example `apps/sink`. `None` if the
    /// kind is no application.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::named(kind.strip_prefix(PREFIX)?)
    }

    /// Returns the application of a role in a scenario's TOML, by its key `kind`. `None` if the role is no
    /// application.
    pub fn of_table(role: &toml::Table) -> Option<Self> {
        Self::of_kind(role.get("kind")?.as_str()?)
    }

    /// Returns the application of a role's configuration. `None` if the role is no application.
    pub fn of_config(role: &RoleConfig) -> Option<Self> {
        Self::of_kind(role.kind())
    }

    /// Returns whether the application opens connections.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::BulkClient | Self::RequestClient)
    }

    /// Returns whether the application accepts connections.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::BulkServer | Self::RequestServer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_applications_crate_is_one_but_the_role_that_moves_a_host() {
        let kinds = RoleConfig::KINDS.iter().filter(|kind| kind.starts_with(PREFIX));
        let unknown: Vec<&&str> = kinds.clone().filter(|kind| Application::of_kind(kind).is_none()).collect();
        assert_eq!(unknown, [&"apps/roam"]);
        assert_eq!(kinds.count(), Application::ALL.len() + 1, "no name that is of no kind");
        assert_eq!(Application::of_kind("sink"), None, "a kind has the name of its crate");
    }
}

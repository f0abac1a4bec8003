//! The errors of configurations.

use node::config::ConfigError;

/// An error in the configuration of a host or a role, with its key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{path}`: {problem}")]
pub struct KeyError {
    /// The path of the key within the host or the role, for example `route[0].via`.
    pub path: String,
    /// What is wrong with the key, and what is allowed.
    pub problem: String,
}

impl KeyError {
    /// Returns an error about the key `path`, with the text `problem`.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}

/// The reason why no node can be made of a configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NodeError {
    /// The configuration of a role is invalid.
    #[error("role {kind}: {error}")]
    Role {
        /// The kind of the role, for example `mobile-ip/home-agent`.
        kind: &'static str,
        /// The index of the role among the roles of its host, from 0. The index is 0 if the role was built without a
        /// host ([`crate::RoleConfig::build`]).
        index: usize,
        /// The key of the role's configuration whose value is wrong, and what is wrong.
        error: ConfigError,
    },
    /// The configuration of the host itself is invalid.
    #[error("{0}")]
    Host(#[from] KeyError),
}

impl From<ConfigError> for NodeError {
    fn from(error: ConfigError) -> Self {
        Self::Host(KeyError::new(error.key, error.problem))
    }
}

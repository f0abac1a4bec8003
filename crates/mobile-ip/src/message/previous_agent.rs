//! The Previous Foreign Agent Notification Extension of a Registration Request (draft-ietf-mobileip-optim-09, section
//! 7.1): asks the new foreign agent to send a Binding Update to the previous one.
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |    Type 96    |    Length     |        Cache Lifetime         |
//! +---------------+---------------+-------------------------------+
//! | Previous Foreign Agent, New Care-of Address, SPI              |
//! +---------------------------------------------------------------+
//! | Authenticator …
//! ```

use super::binding::Update;
use super::extension::{self, Association};
use super::generalized::Generalized;
use super::{Extension, Numbers, Request, RequestFlags, address};
use wire::{Ipv4Addr, Malformed, Reader};

/// What a mobile node's new foreign agent learns about the previous one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviousAgent {
    /// The time in seconds for which the previous foreign agent should forward packets; 0 to forward none.
    pub lifetime: u16,
    /// The address of the previous foreign agent.
    pub previous: Ipv4Addr,
    /// The new care-of address, or the home address if the previous foreign agent should forward nothing.
    pub care_of: Ipv4Addr,
    /// The security parameter index of the association between the mobile node and the previous foreign agent.
    pub spi: u32,
    /// The authenticator of the Binding Update that the new foreign agent builds.
    pub authenticator: Vec<u8>,
}

impl PreviousAgent {
    /// Returns the notification for a registration with `request`. `association` is that with the previous foreign agent.
    pub fn new(
        request: &Request,
        lifetime: u16,
        previous: Ipv4Addr,
        association: &Association,
        numbers: &Numbers,
    ) -> Self {
        let unsigned = Self {
            lifetime,
            previous,
            care_of: request.care_of,
            spi: association.spi,
            authenticator: Vec::new(),
        };
        let mut update = unsigned.update(request, numbers);
        update.sign(numbers.smooth_authentication, association, numbers);
        let authenticator = update.authentication.map(|found| found.authenticator).unwrap_or_default();
        Self { authenticator, ..unsigned }
    }

    /// Parses the data of the extension. It is an error if it is too short.
    pub(super) fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(data, Malformed("mip_notification_length"));
        Ok(Self {
            lifetime: r.u16()?,
            previous: address(&mut r)?,
            care_of: address(&mut r)?,
            spi: r.u32()?,
            authenticator: r.rest().to_vec(),
        })
    }

    /// Returns the extension.
    pub fn extension(&self, numbers: &Numbers) -> Extension {
        let mut data = self.lifetime.to_be_bytes().to_vec();
        data.extend_from_slice(&self.previous.octets());
        data.extend_from_slice(&self.care_of.octets());
        data.extend_from_slice(&self.spi.to_be_bytes());
        data.extend_from_slice(&self.authenticator);
        Extension::Skipped { kind: numbers.previous_agent, data }
    }

    /// Returns the Binding Update to the previous foreign agent. The mobile node and the new foreign agent build the
    /// same bytes, because the mobile node's authenticator covers them: flags A and I, flags M and G of the request, and
    /// its Identification.
    pub fn update(&self, request: &Request, numbers: &Numbers) -> Update {
        Update {
            acknowledge: true,
            minimal: request.flags.has(RequestFlags::MINIMAL),
            gre: request.flags.has(RequestFlags::GRE),
            lifetime: self.lifetime,
            home: request.home,
            care_of: self.care_of,
            identification: Some(request.identification),
            authentication: Some(Generalized {
                subtype: numbers.smooth_authentication,
                spi: self.spi,
                authenticator: self.authenticator.clone(),
            }),
        }
    }
}

impl Request {
    /// Returns the Previous Foreign Agent Notification for the foreign agent. `None` if there is none after the Mobile-Home
    /// Authentication. It is an error if it is malformed.
    pub fn previous_agent(&self, numbers: &Numbers) -> Option<Result<PreviousAgent, Malformed>> {
        extension::for_foreign_agent(&self.extensions, numbers.previous_agent).map(PreviousAgent::parse)
    }
}

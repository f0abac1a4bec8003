//! The numbers of route optimization and smooth handoffs.

use node::config::ConfigError;
use schemars::JsonSchema;
use serde::Deserialize;

/// The numbers of messages, extensions and flags that draft-ietf-mobileip-optim-09 defines. The draft did not become an
/// RFC, and later standards use some of these numbers for other purposes. The last three are those of distributed keys. All
/// agents, mobile nodes and correspondents must have the same values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Numbers {
    /// The message type of a Binding Warning; default 16. RFC 4881 uses it for another message.
    pub warning: u8,
    /// The message type of a Binding Request; default 17. RFC 4881 uses it for another message.
    pub request: u8,
    /// The message type of a Binding Update; default 18. RFC 4857 uses it for another message.
    pub update: u8,
    /// The message type of a Binding Acknowledge; default 19. RFC 4857 uses it for another message.
    pub acknowledge: u8,
    /// The message type of a Buffer Control Request (draft-mkhalil-mobileip-buffer-00); default 20 (the draft has no number).
    pub buffer_control: u8,
    /// The type of the IP Filter Extension of a Buffer Control Request; default 200 (the draft has no number).
    pub ip_filter: u8,
    /// The type of the Binding Warning Extension of a Registration Request; default 16.
    pub warning_extension: u8,
    /// The type of the Previous Foreign Agent Notification Extension of a Registration Request; default 96.
    pub previous_agent: u8,
    /// The subtype of a Generalized Authentication by the home agent; default 250 (the draft has no number).
    pub route_authentication: u8,
    /// The subtype of a Generalized Authentication for smooth handoffs; default 251 (the draft has no number).
    pub smooth_authentication: u8,
    /// The bit of the second byte of flags in an agent advertisement that offers smooth handoffs (flag S); default 128.
    /// RFC 3519 uses this bit for UDP tunnels (flag U).
    pub smooth_flag: u8,
    /// The bit of the flags of a Registration Request that asks for a private binding (flag P); default 1.
    pub private_flag: u8,
    /// The type of the extension of a Registration Reply with a key for the foreign agent, from 128 to 255, so that agents
    /// without this option skip it; default 134 (RFC 3115).
    pub vendor_extension: u8,
    /// The enterprise number in this extension, at most 16777215; default 32473, which RFC 5612 reserves for examples.
    pub vendor: u32,
    /// The type that this enterprise uses for keys in such extensions; default 1.
    pub vendor_key: u16,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            warning: 16,
            request: 17,
            update: 18,
            acknowledge: 19,
            buffer_control: 20,
            ip_filter: 200,
            warning_extension: 16,
            previous_agent: 96,
            route_authentication: 250,
            smooth_authentication: 251,
            smooth_flag: 0x80,
            private_flag: 0x01,
            vendor_extension: 134,
            vendor: 32473,
            vendor_key: 1,
        }
    }
}

/// Message types in use: Registration Request, Registration Reply, and tunneled data (RFC 3519).
const MESSAGES: [u8; 3] = [1, 3, 4];
/// Extension types in use: the three authentications, the Generalized Authentication, and those of RFC 3024, RFC 2794 and RFC 4721.
const EXTENSIONS: [u8; 7] = [32, 33, 34, 36, 130, 131, 132];
/// The reserved bits of a Registration Request, of which the second may be flag P.
const RESERVED_OF_REQUESTS: u8 = 0x05;
/// The bits of the second byte of flags that RFC 5944 and its extensions use: X, I.
const USED_OF_ADVERTISEMENTS: u8 = 0x60;
/// The largest enterprise number of an extension: its first byte is zero (RFC 3115, section 2.2).
const LARGEST_VENDOR: u32 = 0x00ff_ffff;

impl Numbers {
    /// Returns the extension types of a Registration Request that these numbers define.
    pub const fn extensions(&self) -> [u8; 2] {
        [self.warning_extension, self.previous_agent]
    }

    /// Returns the largest number that the key `name` can have.
    pub fn largest(name: &str) -> u32 {
        match name {
            "vendor" => LARGEST_VENDOR,
            "vendor_key" => u16::MAX.into(),
            _ => u8::MAX.into(),
        }
    }

    /// Checks the numbers. An error names the key `numbers` and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = |problem: &str| Err(ConfigError::new("numbers", problem));
        let messages = [
            ("warning", self.warning),
            ("request", self.request),
            ("update", self.update),
            ("acknowledge", self.acknowledge),
            ("buffer_control", self.buffer_control),
        ];
        for (at, (name, kind)) in messages.into_iter().enumerate() {
            if MESSAGES.contains(&kind) {
                return error(&format!("`{name}` is {kind}, but 1, 3 and 4 are types of registrations"));
            }
            if let Some((other, _)) = messages.iter().take(at).find(|(_, earlier)| *earlier == kind) {
                return error(&format!(
                    "`{other}` and `{name}` are both {kind}; each message type must differ"
                ));
            }
        }
        for (name, kind) in [
            ("warning_extension", self.warning_extension),
            ("previous_agent", self.previous_agent),
            ("ip_filter", self.ip_filter),
        ] {
            if EXTENSIONS.contains(&kind) {
                return error(&format!(
                    "`{name}` is {kind}, but must differ from 32 to 34, 36 and 130 to 132"
                ));
            }
        }
        if self.warning_extension == self.previous_agent {
            return error(&format!(
                "`warning_extension` and `previous_agent` are both {}; each extension type must differ",
                self.previous_agent
            ));
        }
        if self.route_authentication == self.smooth_authentication {
            return error("`route_authentication` and `smooth_authentication` must differ");
        }
        if !self.smooth_flag.is_power_of_two() || self.smooth_flag & USED_OF_ADVERTISEMENTS != 0 {
            return error("`smooth_flag` must be one bit: 1, 2, 4, 8, 16 or 128");
        }
        if !self.private_flag.is_power_of_two() || self.private_flag & RESERVED_OF_REQUESTS == 0 {
            return error("`private_flag` must be a reserved bit of requests: 1 or 4");
        }
        if self.vendor_extension < 128 || EXTENSIONS.contains(&self.vendor_extension) {
            return error("`vendor_extension` must be from 128 to 255, and differ from 130 to 132");
        }
        if self.vendor > LARGEST_VENDOR {
            return error(
                "`vendor` must be at most 16777215, the largest enterprise number in this extension",
            );
        }
        Ok(())
    }
}

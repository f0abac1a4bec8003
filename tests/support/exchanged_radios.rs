//! `mobile-ip/overlay` with the radios of the truck exchanged. Tests of both backends use it.

/// The setting that makes the wireless LAN the further interface, and the satellite terminal the first one.
pub(crate) const EXCHANGED_RADIOS: &str = "host.truck.role=[
    { kind = \"mobile-ip/mobile-node\", further_interfaces = [{ name = \"air2\", preference = 1, weakest_signal = -80 }] },
    { kind = \"apps/roam\", places = [{ name = \"teleport\", cell = 1 }], handoffs = false },
    { kind = \"apps/roam\", interface = \"air2\", follow = 3, handoffs = false, places = [
        { name = \"dealership\", cell = 2 }, { name = \"town\", cell = 3 }, { name = \"services\", cell = 4 },
    ] },
    { kind = \"apps/sink\", at = \"truck:9000\" },
    { kind = \"apps/bulk-client\", to = \"correspondent:9001\", start = \"2s\" },
]";

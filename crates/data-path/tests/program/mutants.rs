//! Mistakes in the program: what is wrong, the right text of the source, and the wrong one.

/// Mistakes about messages to roles.
pub(crate) const OVERTAKING: [(&str, &str, &str); 7] = [
    ("packets overtake messages", "    if (waits())", "    if (0)"),
    ("messages to groups are overtaken", "outer->protocol == 17 ? message() : XDP_PASS", "XDP_PASS"),
    ("no port is a role's", "return map_lookup(&ports, &port) != 0;", "return 0;"),
    ("all ports are a role's", "return map_lookup(&ports, &port) != 0;", "return 1;"),
    ("the source's port is read", "swap(udp[1])", "swap(udp[0])"),
    ("fragments of messages are overtaken", "header->flags_offset & swap(0x3fff) || ", ""),
    ("messages with options are overtaken", "header->version_length != 0x45 || header", "header"),
];

pub(crate) const MUTANTS: [(&str, &str, &str); 25] = [
    (
        "it passes everything",
        "    int verdict = forward(context);",
        "    int verdict = XDP_PASS; (void)forward;",
    ),
    ("a default route forwards what has arrived", "if (is_own && shape->dst_len != 32)", "if (0)"),
    ("a closed class has other routes", "if (class >= CLOSED && !shape->has_class)", "if (0)"),
    ("an expired route is used", "if (copy->span > now)", "if (1)"),
    ("only routes to hosts are found", ".dst = dst & shape->dst_mask", ".dst = dst"),
    ("the source is not looked up", ".src = src & shape->src_mask", ".src = 0"),
    ("a check is not made", "if (policy && policy->has_check)", "if (0)"),
    ("a policy for all neighbors is not found", "policy = map_lookup(&policies, &any);", "(void)any;"),
    ("the MTU is not checked", "len > to->mtu", "0"),
    ("the last hop is forwarded", "inner->ttl <= 1", "inner->ttl < 1"),
    ("a wrong outer checksum is accepted", "!has_correct_checksum(outer)", "0"),
    ("a wrong inner checksum is accepted", "!has_correct_checksum(inner)", "0"),
    (
        "an outer fragment is opened",
        "outer->flags_offset & swap(0xbfff)",
        "outer->flags_offset & swap(0x8000)",
    ),
    ("an inner reserved flag is accepted", "inner->flags_offset & swap(0x8000)", "0"),
    ("padding is sent", "swap(outer->total) != len", "swap(outer->total) > len"),
    ("a notice is not given", "|| leads->notice", ""),
    ("soft state is used", "if (copy->lifetime == PERMANENT)", "if (copy->lifetime <= SOFT_STATE)"),
    ("the first use after an idle time is not reported", "if (end < copy->span || end > now)", "if (1)"),
    ("uses are not recorded", "        route->used = now;", "        (void)now;"),
    ("other kinds of tunnels are open", "|| !(opens->hop & IP_IN_IP)", ""),
    ("frames to other stations are taken", "if (!is_same(frame->dst, from->mac))", "if (0)"),
    ("a packet is kept as it arrived", "    decrement((struct ipv4 *)slot->data);", ""),
    (
        "a packet is kept without its interface",
        "        slot->iface = from->iface;",
        "        slot->iface = 0;",
    ),
    ("a packet is kept without its time", "    slot->at = now;", "    slot->at = 0;"),
    ("a packet is kept after it was passed", "    add_one(&ring->whole);", "    add_one(&ring->begun);"),
];

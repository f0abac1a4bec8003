-- A dissector for Wireshark and tshark: the messages of route optimization, smooth handoffs and buffers of Mobile IP, which
-- Wireshark does not know (draft-ietf-mobileip-optim-09, draft-mkhalil-mobileip-buffer-00). All other messages go to Wireshark's own
-- dissector, and so do Registration Requests and Replies, of which the extensions of these drafts are shown too, and the key for a
-- foreign agent, which is none of the drafts'.
--
--     tshark -X lua_script:tools/wireshark/route_optimization.lua -r capture.pcapng -Y mipro
--
-- The drafts did not become standards, so their numbers are preferences: `-o mipro.update:18`, for example.

local proto = Proto("mipro", "Mobile IP Route Optimization")

local PORT = 434
local REQUEST = 1
local REPLY = 3
-- The lengths of the fixed parts, by message type.
local HEADERS = { [REQUEST] = 24, [REPLY] = 20 }
-- An extension with this type has a subtype, and then a length of two bytes (RFC 4721, section 5). The others of requests have a
-- length of one byte.
local GENERALIZED = 36

proto.prefs.warning = Pref.uint("Binding Warning", 16, "The message type of a Binding Warning")
proto.prefs.request = Pref.uint("Binding Request", 17, "The message type of a Binding Request")
proto.prefs.update = Pref.uint("Binding Update", 18, "The message type of a Binding Update")
proto.prefs.acknowledge = Pref.uint("Binding Acknowledge", 19, "The message type of a Binding Acknowledge")
proto.prefs.buffer_control = Pref.uint("Buffer Control Request", 20, "The message type of a Buffer Control Request")
proto.prefs.ip_filter = Pref.uint("IP Filter Extension", 200, "The type of the IP Filter Extension")
proto.prefs.warning_extension = Pref.uint("Binding Warning Extension", 16, "The type of the Binding Warning Extension")
proto.prefs.previous_agent =
    Pref.uint("Previous Foreign Agent Notification", 96, "The type of the Previous Foreign Agent Notification Extension")
proto.prefs.vendor_extension =
    Pref.uint("Vendor extension", 134, "The type of the extension with a key for a foreign agent (RFC 3115)")
proto.prefs.vendor = Pref.uint("Vendor", 32473, "The enterprise number in this extension")
proto.prefs.vendor_key = Pref.uint("Vendor type", 1, "The type of keys among the extensions of this enterprise")
proto.prefs.route_authentication = Pref.uint("Authentication by the home agent", 250, "The subtype of this Generalized Authentication")
proto.prefs.smooth_authentication = Pref.uint("Authentication for handoffs", 251, "The subtype of this Generalized Authentication")

local STATUS = {
    [0] = "accepted",
    [128] = "reason unspecified",
    [129] = "administratively prohibited",
    [130] = "insufficient resources",
    [131] = "sending node failed authentication",
    [133] = "identification mismatch",
    [134] = "poorly formed update",
}

local f = {
    type = ProtoField.uint8("mipro.type", "Type"),
    flags_of_update = ProtoField.uint8("mipro.flags", "Flags", base.HEX),
    a = ProtoField.bool("mipro.flags.a", "A: an acknowledgment is wanted", 8, nil, 0x80),
    i = ProtoField.bool("mipro.flags.i", "I: there is an Identification", 8, nil, 0x40),
    m = ProtoField.bool("mipro.flags.m", "M: minimal encapsulation", 8, nil, 0x20),
    g = ProtoField.bool("mipro.flags.g", "G: generic routing encapsulation", 8, nil, 0x10),
    flags_of_control = ProtoField.uint8("mipro.control", "Flags", base.HEX),
    keep = ProtoField.bool("mipro.control.b", "B: keep packets", 8, nil, 0x40),
    forward = ProtoField.bool("mipro.control.f", "F: the packets are for another agent", 8, nil, 0x20),
    identified = ProtoField.bool("mipro.control.i", "I: there is an Identification", 8, nil, 0x10),
    stop = ProtoField.bool("mipro.control.d", "D: drop the packets", 8, nil, 0x02),
    lifetime = ProtoField.uint16("mipro.lifetime", "Lifetime in seconds"),
    home = ProtoField.ipv4("mipro.home", "Home Address"),
    care_of = ProtoField.ipv4("mipro.care_of", "Care-of Address"),
    target = ProtoField.ipv4("mipro.target", "Target"),
    identification = ProtoField.uint64("mipro.identification", "Identification", base.HEX),
    status = ProtoField.uint8("mipro.status", "Status", base.DEC, STATUS),
    previous = ProtoField.ipv4("mipro.previous", "Previous Foreign Agent"),
    extension = ProtoField.uint8("mipro.extension", "Extension"),
    subtype = ProtoField.uint8("mipro.subtype", "Subtype"),
    spi = ProtoField.uint32("mipro.spi", "Security Parameter Index"),
    authenticator = ProtoField.bytes("mipro.authenticator", "Authenticator"),
    source = ProtoField.ipv4("mipro.source", "Source"),
    vendor = ProtoField.uint32("mipro.vendor", "Vendor"),
    vendor_type = ProtoField.uint16("mipro.vendor_type", "Vendor type"),
    masked_key = ProtoField.bytes("mipro.masked_key", "Masked key"),
    packet_id = ProtoField.uint16("mipro.packet", "Identification of a packet"),
}
proto.fields = f

local malformed = ProtoExpert.new("mipro.malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { malformed }

-- Reads a range from its begin to its end. A read beyond the end is remembered, and returns nil.
local function reader(range)
    local at, is_short = 0, false
    local self = {}
    function self.take(count)
        if is_short or range == nil or at + count > range:len() then
            is_short = true
            return nil
        end
        at = at + count
        return range(at - count, count)
    end
    function self.left()
        return range ~= nil and range:len() - at or 0
    end
    function self.is_short()
        return is_short
    end
    return self
end

-- Adds a field of `count` bytes, and returns its bytes; nil if there are not so many.
local function add(tree, r, field, count)
    local bytes = r.take(count)
    if bytes then
        tree:add(field, bytes)
    end
    return bytes
end

-- Adds a byte of flags, and returns it; nil if there is none.
local function add_flags(tree, r, field, bits)
    local bytes = r.take(1)
    if bytes then
        local flags = tree:add(field, bytes)
        for _, bit in ipairs(bits) do
            flags:add(bit, bytes)
        end
    end
    return bytes
end

-- Adds addresses up to the end. Returns whether there is at least one, and nothing else.
local function add_targets(tree, r)
    if r.left() == 0 or r.left() % 4 ~= 0 then
        return false
    end
    while r.left() > 0 do
        add(tree, r, f.target, 4)
    end
    return true
end

-- Adds a Security Parameter Index, and an authenticator up to the end.
local function add_authenticator(tree, r)
    add(tree, r, f.spi, 4)
    if r.left() > 0 then
        add(tree, r, f.authenticator, r.left())
    end
    return true
end

-- Adds the Generalized Authentication at the end of a message. Returns whether it is there, and nothing behind it.
local function add_authentication(tree, r)
    local kind = r.take(1)
    if not kind or kind:uint() ~= GENERALIZED then
        return false
    end
    local branch = tree:add(f.extension, kind):append_text(" (Generalized Mobile IP Authentication)")
    local subtype = r.take(1)
    if subtype then
        local names = { [proto.prefs.route_authentication] = " (home agent)", [proto.prefs.smooth_authentication] = " (smooth handoff)" }
        branch:add(f.subtype, subtype):append_text(names[subtype:uint()] or "")
    end
    local length = r.take(2)
    if not length or length:uint() < 4 or length:uint() ~= r.left() then
        return false
    end
    return add_authenticator(branch, r)
end

-- Adds the packets of an IP Filter Extension: flags, the sources, and for each source the identifications of its packets.
local function add_filter(tree, r)
    local count = r.take(1)
    local flags = r.take(1)
    if not count or not flags or flags:uint() ~= 0 then
        return false
    end
    local sources = {}
    for number = 1, count:uint() do
        local source = r.take(4)
        sources[number] = source and tree:add(f.source, source)
    end
    for number = 1, count:uint() do
        local index, ids = r.take(1), r.take(1)
        if not index or not ids or not sources[number] or index:uint() ~= number - 1 or ids:uint() == 0 then
            return false
        end
        for _ = 1, ids:uint() do
            add(sources[number], r, f.packet_id, 2)
        end
        if ids:uint() % 2 == 0 then
            r.take(2)
        end
    end
    return not r.is_short() and r.left() == 0
end

-- Skips reserved bytes. Returns whether they are zero: the authentication of a message does not cover them.
local function skip_reserved(r, count)
    local bytes = r.take(count)
    return bytes ~= nil and bytes:uint() == 0
end

local function warning(tree, r)
    r.take(3)
    add(tree, r, f.home, 4)
    return add_targets(tree, r)
end

local function binding_request(tree, r)
    local is_plain = skip_reserved(r, 3)
    add(tree, r, f.home, 4)
    add(tree, r, f.identification, 8)
    return is_plain and not r.is_short() and (r.left() == 0 or add_authentication(tree, r))
end

local function update(tree, r)
    local flags = add_flags(tree, r, f.flags_of_update, { f.a, f.i, f.m, f.g })
    add(tree, r, f.lifetime, 2)
    add(tree, r, f.home, 4)
    add(tree, r, f.care_of, 4)
    if flags and flags:bitfield(1) == 1 then
        add(tree, r, f.identification, 8)
    end
    return add_authentication(tree, r) and flags:bitfield(4, 4) == 0
end

local function acknowledge(tree, r)
    local is_plain = skip_reserved(r, 2)
    add(tree, r, f.status, 1)
    add(tree, r, f.home, 4)
    if r.left() > 0 then
        add(tree, r, f.identification, 8)
    end
    return is_plain and (r.left() == 0 or add_authentication(tree, r))
end

local function buffer_control(tree, r, rest)
    add_flags(tree, r, f.flags_of_control, { f.keep, f.forward, f.identified, f.stop })
    r.take(2)
    add(tree, r, f.home, 4)
    add(tree, r, f.identification, 8)
    if r.is_short() then
        return false
    end
    local at = rest:len() - r.left()
    if r.left() >= 2 and rest(at, 1):uint() == proto.prefs.ip_filter then
        local branch = tree:add(f.extension, r.take(1))
        local data = r.take(r.take(1):uint())
        if not data or not add_filter(branch, reader(data)) then
            return false
        end
    end
    return add_authentication(tree, r)
end

local function previous_agent(tree, r)
    add(tree, r, f.lifetime, 2)
    add(tree, r, f.previous, 4)
    add(tree, r, f.care_of, 4)
    return add_authenticator(tree, r)
end

local function warning_extension(tree, r)
    r.take(2)
    add(tree, r, f.home, 4)
    return add_targets(tree, r)
end

-- Returns whether an extension of a vendor has a key for a foreign agent.
local function is_key(range)
    return range:len() >= 8 and range(2, 4):uint() == proto.prefs.vendor and range(6, 2):uint() == proto.prefs.vendor_key
end

local function distributed_key(tree, r)
    r.take(2)
    add(tree, r, f.vendor, 4)
    add(tree, r, f.vendor_type, 2)
    add(tree, r, f.spi, 4)
    add(tree, r, f.masked_key, 32)
    return r.left() == 0
end

-- Returns the name and the reader of a message type; nil if it is none of the drafts'.
local function message(kind)
    local prefs = proto.prefs
    if kind == prefs.warning then
        return "Binding Warning", warning
    elseif kind == prefs.request then
        return "Binding Request", binding_request
    elseif kind == prefs.update then
        return "Binding Update", update
    elseif kind == prefs.acknowledge then
        return "Binding Acknowledge", acknowledge
    elseif kind == prefs.buffer_control then
        return "Buffer Control Request", buffer_control
    end
end

-- Adds what `read` finds in `range`, or that the bytes are malformed. If a capture has only the begin of a message, `is_cut`, no
-- such verdict is possible.
local function dissect(tree, range, name, read, is_cut)
    local r = reader(range)
    if (not read(tree, r, range) or r.is_short()) and not is_cut then
        tree:add_proto_expert_info(malformed, name .. ": malformed")
    end
end

-- Shows the extensions of these drafts in a Registration Request, or the key in a Registration Reply.
local function extensions(range, tree, message_type)
    local of_requests = {
        [proto.prefs.warning_extension] = { "Binding Warning Extension", warning_extension },
        [proto.prefs.previous_agent] = { "Previous Foreign Agent Notification", previous_agent },
    }
    local of_replies = {
        [proto.prefs.vendor_extension] = { "Mobile-Foreign Key", distributed_key, is_key },
    }
    local known = message_type == REQUEST and of_requests or of_replies
    local at = HEADERS[message_type]
    while at + 2 <= range:len() do
        local kind, head, length = range(at, 1):uint(), 2, 0
        if kind == GENERALIZED then
            if at + 4 > range:len() then
                return
            end
            head, length = 4, range(at + 2, 2):uint()
        else
            length = range(at + 1, 1):uint()
        end
        if at + head + length > range:len() then
            return
        end
        local found = known[kind]
        if found and (not found[3] or length > 0 and found[3](range(at + head, length))) then
            local name, read = found[1], found[2]
            local branch = tree:add(proto, range(at, head + length), name)
            branch:add(f.extension, range(at, 1))
            dissect(branch, length > 0 and range(at + head, length) or nil, name, read, false)
        end
        at = at + head + length
    end
end

local wiresharks = DissectorTable.get("udp.port"):get_dissector(PORT)

function proto.dissector(buffer, packet, tree)
    local kind = buffer:len() > 0 and buffer(0, 1):uint() or 0
    local name, read = message(kind)
    if not name then
        local taken = wiresharks and wiresharks:call(buffer, packet, tree) or 0
        if HEADERS[kind] and buffer:len() > HEADERS[kind] then
            extensions(buffer(), tree, kind)
        end
        return taken
    end
    packet.cols.protocol = "MobileIP"
    packet.cols.info = name
    local branch = tree:add(proto, buffer(), "Mobile IP " .. name)
    branch:add(f.type, buffer(0, 1))
    dissect(branch, buffer:len() > 1 and buffer(1) or nil, name, read, buffer:len() < buffer:reported_len())
    return buffer:len()
end

DissectorTable.get("udp.port"):add(PORT, proto)

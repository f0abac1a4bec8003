// An XDP program that forwards packets out of tunnels as a node does: it takes a datagram out of IP in IP, decrements the time to
// live, and sends it to a link address. For routes with `Aside` it also keeps a copy of the last packets. Everything else goes to
// the node, untouched (XDP_PASS). `src/covers.rs` says exactly what the program forwards; a test compares the two.
//
// Numbers are in the byte order of the machine, and addresses in network byte order, as in `table::map`.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define COPY(to, from, size) __builtin_memcpy(to, from, size)

// What libbpf's headers give: the description of a map, and the numbers of the kernel's functions.
#define UINT(name, value) int (*name)[value]
#define TYPE(name, of) of *name
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*adjust_head)(void *context, int delta) = (void *)44;
static u64 (*boottime)(void) = (void *)125;
static long (*load_bytes)(void *context, u32 offset, void *to, u32 length) = (void *)189;

enum { HASH = 1, ARRAY = 2, PERCPU_ARRAY = 6 };
// Elements of a hash are allocated one by one. The kernel may use a freed element for another key at once, while a program still
// reads it. So a look-up copies the element, and then looks the same key up again (`find`, `is_current`).
enum { NO_PREALLOC = 1, MMAPABLE = 1 << 10 };
enum { XDP_PASS = 2 };

struct xdp_md {
    u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct ethernet {
    u8 dst[6], src[6];
    u16 kind;
};

struct ipv4 {
    u8 version_length, tos;
    u16 total, id, flags_offset;
    u8 ttl, protocol;
    u16 checksum;
    u32 src, dst;
};

// --- the maps. The same layout: `table::map`, `src/lib.rs` (devices), `src/shapes.rs` (config) and `src/rings.rs` (slots) ---------

enum { SHAPES = 32 };

struct shape {
    u32 src_mask, dst_mask;
    u8 src_len, dst_len, has_class, unused;
};

struct config {
    u64 t0; // the zero of the node's clock, in nanoseconds of CLOCK_BOOTTIME
    u32 shapes, version; // each change of the configuration has another version
    struct shape shape[SHAPES]; // most specific first
};

struct port_key {
    u16 iface;
    u8 from[6], has_from, unused;
};

struct policy {
    u8 owner, class, has_check, check, ttl, icmp;
    u16 punts;
};

struct route_key {
    u32 src, dst;
    u8 src_len, dst_len, has_class, class;
};

struct route {
    u8 owner, action, hop, lifetime;
    u32 entry;
    u16 iface;
    u8 mac[6];
    u32 src, dst, reason;
    u16 mtu_or_packets;
    u8 class, failing;
    u64 span, notice, used;
    // Not of `MapRoute`: the ring of a route whose packets are kept. `ring_len` is 0 without one.
    u32 ring, ring_len;
};

struct device {
    u32 ifindex;
    u16 iface, mtu;
    u8 mac[6];
    u16 unused;
};

// The room for a kept packet. `mark` is even while the packet is whole, and odd while it is written.
enum { ROOM = 2048 - 40 };

struct slot {
    u64 mark, number, at;
    u32 entry, exit;
    u16 len, iface;
    u32 owner;
    u8 data[ROOM];
};

// The first slot of a ring has the ring's numbers: of packets that were begun, and that are whole.
struct ring {
    u64 begun, whole;
};

struct { UINT(type, HASH); UINT(max_entries, 1); UINT(map_flags, NO_PREALLOC); TYPE(key, u32); TYPE(value, struct config); } config SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 65536); UINT(map_flags, NO_PREALLOC); TYPE(key, struct route_key); TYPE(value, struct route); } routes SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 65536); UINT(map_flags, NO_PREALLOC); TYPE(key, struct port_key); TYPE(value, struct policy); } policies SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 4096); UINT(map_flags, NO_PREALLOC); TYPE(key, u32); TYPE(value, u32); } addresses SEC(".maps");
// The ports of UDP that roles of the node listen to.
struct { UINT(type, HASH); UINT(max_entries, 1024); UINT(map_flags, NO_PREALLOC); TYPE(key, u32); TYPE(value, u32); } ports SEC(".maps");
// The devices by index, for the arrival, and by the number of the interface, for the departure.
struct { UINT(type, HASH); UINT(max_entries, 256); UINT(map_flags, NO_PREALLOC); TYPE(key, u32); TYPE(value, struct device); } arrivals SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 256); UINT(map_flags, NO_PREALLOC); TYPE(key, u32); TYPE(value, struct device); } departures SEC(".maps");
struct { UINT(type, ARRAY); UINT(max_entries, 1); UINT(map_flags, MMAPABLE); TYPE(key, u32); TYPE(value, struct slot); } slots SEC(".maps");
struct { UINT(type, ARRAY); UINT(max_entries, 1); UINT(map_flags, MMAPABLE); TYPE(key, u32); TYPE(value, struct ring); } rings SEC(".maps");
// The number of kept packets, of messages to roles, and of those that the daemon has handled; the daemon writes the last one.
enum { NEWS, MESSAGES, HANDLED, NUMBERS };
struct { UINT(type, ARRAY); UINT(max_entries, NUMBERS); UINT(map_flags, MMAPABLE); TYPE(key, u32); TYPE(value, u64); } news SEC(".maps");

enum { FORWARDED, KEPT, PASSED, COUNTS };
struct { UINT(type, PERCPU_ARRAY); UINT(max_entries, COUNTS); TYPE(key, u32); TYPE(value, u64); } counts SEC(".maps");

// The tags of `table::map::tag`.
enum { FORWARD = 1, PUNT = 2, OPEN = 6 };
enum { TO_MAC = 1 };
enum { PERMANENT = 1, SOFT_STATE = 2, REPORT_IDLE = 3, UNTIL = 4 };
enum { IP_IN_IP = 1 }; // a bit of `Kinds::bits`
enum { WIRE = 1, CLOSED = 128 }; // classes

// -------------------------------------------------------------------------------------------------------------------------------

// Adds 1. All earlier writes are visible before this one, because the kernel orders an operation that returns the value.
INLINE void add_one(u64 *number) {
    volatile u64 before = __sync_fetch_and_add(number, 1);
    (void)before;
}

INLINE u16 swap(u16 number) {
    return __builtin_bswap16(number);
}

INLINE void count(u32 what) {
    u64 *number = map_lookup(&counts, &what);
    if (number)
        *number += 1;
}

INLINE int is_same(const u8 *one, const u8 *other) {
    u8 differs = 0;
#pragma unroll
    for (int byte = 0; byte < 6; byte++)
        differs |= one[byte] ^ other[byte];
    return !differs;
}

// Returns whether the header without options has a correct checksum.
INLINE int has_correct_checksum(const struct ipv4 *header) {
    const u16 *words = (const void *)header;
    u32 sum = 0;
#pragma unroll
    for (int word = 0; word < 10; word++)
        sum += words[word];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

// Decrements the time to live, and updates the checksum (RFC 1624).
INLINE void decrement(struct ipv4 *header) {
    u32 sum = swap(header->checksum) + 0x100;
    header->ttl -= 1;
    header->checksum = swap(sum + (sum >> 16));
}

// Returns whether a copy of a route is not that route, apart from its last use, which other processors change.
INLINE int differs(const struct route *copy, const struct route *route) {
    const u64 *one = (const void *)copy, *other = (const void *)route;
    u64 all = 0;
#pragma unroll
    for (int word = 0; word < 8; word++)
        if (word != 6) // `used`
            all |= one[word] ^ *(volatile const u64 *)&other[word];
    return all != 0;
}

// Returns the most specific valid route, as `Ruleset::find_route` does. Returns NULL if there is none, or if the node must decide: a
// route that is refreshed by packets matches, or the first packet after an idle time uses a route.
// Copies the route to `copy`: another route may have taken its place when the caller reads the result, which is only for `use`.
INLINE struct route *find(const struct config *rules, u64 now, u8 class, u32 src, u32 dst, int is_own, struct route *copy) {
    for (u32 number = 0; number < SHAPES; number++) {
        if (number >= rules->shapes)
            return 0;
        const struct shape *shape = &rules->shape[number];
        if (is_own && shape->dst_len != 32)
            continue;
        if (class >= CLOSED && !shape->has_class)
            continue;
        struct route_key key = {
            .src = src & shape->src_mask,
            .dst = dst & shape->dst_mask,
            .src_len = shape->src_len,
            .dst_len = shape->dst_len,
            .has_class = shape->has_class,
            .class = shape->has_class ? class : 0,
        };
        struct route *route = map_lookup(&routes, &key);
        if (!route)
            continue;
        COPY(copy, route, sizeof(*copy));
        if (map_lookup(&routes, &key) != route || differs(copy, route))
            return 0; // it is being changed
        if (copy->lifetime == PERMANENT)
            return route;
        if (copy->lifetime == UNTIL) {
            if (copy->span > now)
                return route;
            continue; // it has expired
        }
        if (copy->lifetime == REPORT_IDLE) {
            u64 end = copy->used + copy->span;
            if (end < copy->span || end > now)
                return route;
        }
        return 0;
    }
    return 0;
}

// Returns whether the configuration is still the one with this version.
INLINE int is_current(const struct config *rules, u32 version) {
    u32 zero = 0;
    return map_lookup(&config, &zero) == rules && *(volatile u32 *)&rules->version == version;
}

// Records the use of a route whose copy is `copy`. If another route has taken its place, that one counts as used.
INLINE void use(struct route *route, const struct route *copy, u64 now) {
    if (copy->lifetime == REPORT_IDLE && route->used < now)
        route->used = now;
}

// Returns a slot of the route's ring that no other processor writes, and marks it as being written. Returns NULL if there is none: then
// the packet goes to the node.
INLINE struct slot *claim(const struct route *route, struct ring **ring) {
    u32 first = route->ring, length = route->ring_len;
    *ring = map_lookup(&rings, &first);
    if (!*ring || !length)
        return 0;
    u64 number = __sync_fetch_and_add(&(*ring)->begun, 1);
    u32 index = first + (u32)(number % length);
    struct slot *slot = map_lookup(&slots, &index);
    if (!slot)
        return 0;
    u64 mark = *(volatile u64 *)&slot->mark;
    if (mark & 1 || __sync_val_compare_and_swap(&slot->mark, mark, mark + 1) != mark)
        return 0;
    slot->number = number;
    return slot;
}

// Keeps a copy of the datagram at `offset`, as it is after forwarding. Returns whether it is in the slot.
INLINE int keep(struct xdp_md *context, struct slot *slot, const struct route *route, u64 now, u32 offset, u32 len) {
    slot->at = now;
    slot->owner = route->owner;
    slot->len = 0;
    // The empty assembly keeps clang from joining both comparisons into one, of which the kernel's verifier does not learn the limits.
    if (len < sizeof(struct ipv4))
        return 0;
    asm volatile("" : "+r"(len));
    if (len > ROOM || load_bytes(context, offset, slot->data, len))
        return 0;
    decrement((struct ipv4 *)slot->data);
    slot->len = len;
    return 1;
}

// Records that a message to a role was passed. It may change the rules, so packets behind it must wait behind it.
INLINE int message(void) {
    u32 index = MESSAGES;
    u64 *number = map_lookup(&news, &index);
    if (number)
        add_one(number);
    return XDP_PASS;
}

// Returns whether UDP to this host may be a message for one of the node's roles, and no packet for a program of this host. It may be
// if the port cannot be read here.
INLINE int is_for_role(const struct ipv4 *header, const void *end) {
    const u16 *udp = (const void *)(header + 1);
    if (header->version_length != 0x45 || header->flags_offset & swap(0x3fff) || (const void *)(udp + 2) > end)
        return 1;
    u32 port = swap(udp[1]);
    return map_lookup(&ports, &port) != 0;
}

// Returns whether the daemon has not handled all messages yet. Then it gets all packets, in their order.
INLINE int waits(void) {
    u32 first = MESSAGES, second = HANDLED;
    u64 *messages = map_lookup(&news, &first), *handled = map_lookup(&news, &second);
    return messages && handled && *(volatile u64 *)messages != *(volatile u64 *)handled;
}

INLINE int forward(struct xdp_md *context) {
    void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
    struct ethernet *frame = data;
    struct ipv4 *outer = (void *)(frame + 1), *inner = outer + 1;
    if ((void *)(outer + 1) > end)
        return XDP_PASS;
    u32 zero = 0, arrival = context->ingress_ifindex;
    const struct config *rules = map_lookup(&config, &zero);
    const struct device *from = map_lookup(&arrivals, &arrival);
    if (!rules || !from)
        return XDP_PASS;
    if (frame->kind != swap(0x0800))
        return XDP_PASS;
    // A message can be for a group that this host listens to.
    if (frame->dst[0] & 1)
        return outer->protocol == 17 ? message() : XDP_PASS;
    if (!is_same(frame->dst, from->mac))
        return XDP_PASS;
    u32 outer_src = outer->src, outer_dst = outer->dst;
    if (!map_lookup(&addresses, &outer_dst))
        return XDP_PASS;
    if (outer->protocol == 17)
        return is_for_role(outer, end) ? message() : XDP_PASS;
    if ((void *)(inner + 1) > end)
        return XDP_PASS;
    // The frame is exactly the datagram, without padding. Neither header has options or the reserved flag, and the outer datagram is
    // no fragment.
    u32 len = (u32)(end - data) - sizeof(*frame);
    if (outer->version_length != 0x45 || swap(outer->total) != len || outer->flags_offset & swap(0xbfff))
        return XDP_PASS;
    len -= sizeof(*outer);
    if (inner->version_length != 0x45 || swap(inner->total) != len || inner->flags_offset & swap(0x8000))
        return XDP_PASS;
    if (outer->protocol != 4 || inner->ttl <= 1 || !has_correct_checksum(outer) || !has_correct_checksum(inner))
        return XDP_PASS;
    u32 src = inner->src, dst = inner->dst;

    struct port_key port = { .iface = from->iface, .has_from = 1 };
    COPY(port.from, frame->src, 6);
    const struct policy *policy = map_lookup(&policies, &port);
    if (!policy) {
        struct port_key any = { .iface = from->iface };
        policy = map_lookup(&policies, &any);
    }
    if (policy && policy->has_check)
        return XDP_PASS;
    u64 since = boottime(), now = since > rules->t0 ? since - rules->t0 : 0;

    // A message that came before this packet may change its routes. So this is asked before they are looked up.
    u32 version = *(volatile u32 *)&rules->version;
    if (waits())
        return XDP_PASS;
    struct route open_copy, route_copy;
    const struct route *opens = &open_copy, *leads = &route_copy;
    struct route *open = find(rules, now, policy ? policy->class : WIRE, outer_src, outer_dst, 1, &open_copy);
    if (!open || opens->action != OPEN || !(opens->hop & IP_IN_IP))
        return XDP_PASS;
    struct route *route = find(rules, now, opens->class, src, dst, map_lookup(&addresses, &dst) != 0, &route_copy);
    if (!route || leads->hop != TO_MAC || leads->notice || !is_current(rules, version))
        return XDP_PASS;
    int is_kept = leads->action == PUNT && leads->ring_len;
    if (leads->action != FORWARD && !is_kept)
        return XDP_PASS;
    u32 departure = leads->iface;
    const struct device *to = map_lookup(&departures, &departure);
    if (!to || len > to->mtu || (is_kept && len > ROOM))
        return XDP_PASS;

    struct ring *ring = 0;
    struct slot *slot = 0;
    if (is_kept) {
        slot = claim(leads, &ring);
        if (!slot)
            return XDP_PASS;
        slot->entry = outer_src;
        slot->exit = outer_dst;
        slot->iface = from->iface;
        if (!keep(context, slot, leads, now, sizeof(*frame) + sizeof(*outer), len)) {
            add_one(&slot->mark);
            return XDP_PASS;
        }
    }
    if (adjust_head(context, sizeof(*outer))) {
        if (slot) {
            slot->len = 0;
            add_one(&slot->mark);
        }
        return XDP_PASS;
    }
    data = (void *)(long)context->data;
    end = (void *)(long)context->data_end;
    frame = data;
    inner = (void *)(frame + 1);
    if ((void *)(inner + 1) <= end) { // always true: the kernel's verifier needs it
        COPY(frame->dst, leads->mac, 6);
        COPY(frame->src, to->mac, 6);
        frame->kind = swap(0x0800);
        decrement(inner);
    }
    use(open, opens, now);
    use(route, leads, now);
    if (slot && ring) {
        add_one(&slot->mark);
        add_one(&ring->whole);
        u64 *number = map_lookup(&news, &zero);
        if (number)
            add_one(number);
        count(KEPT);
    }
    count(FORWARDED);
    return redirect(to->ifindex, 0);
}

SEC("xdp") int wayfare_forward(struct xdp_md *context) {
    int verdict = forward(context);
    if (verdict == XDP_PASS)
        count(PASSED);
    return verdict;
}

char program_license[] SEC("license") = "MIT";

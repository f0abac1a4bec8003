/*
 * The peer in the tests of mod.rs: usrsctp on its raw sockets. It prints the notifications about addresses.
 *
 *   peer receive LOCAL PORT FILE            accepts one association; what arrives is written to FILE
 *   peer send LOCAL PORT REMOTE PORT BYTES  opens one, and sends at most BYTES bytes; byte i is (31 * i + i / 251) % 256
 *
 * Standard output, a line each: "ready", "up", "added ADDRESS", "confirmed ADDRESS", "primary ADDRESS",
 * "removed ADDRESS", "lost", "restarted", "sent BYTES" when that is all, and in the end "done BYTES MICROSECONDS", what
 * was received, from the first to the last byte.
 * Standard input, a line each: "add ADDRESS", "primary ADDRESS" and "delete ADDRESS" change its own addresses; at
 * "finish" it stops sending. It runs until standard input ends, because a peer that misses SHUTDOWN COMPLETE repeats its chunk.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { MESSAGE = 1400 * 8, BUFFER = 256 * 1024 };

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_in address(const char *text, const char *port) {
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, text, &found.sin_addr) != 1) fail(text);
    return found;
}

static uint64_t micros(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* --- what usrsctp reports - */

static void tell_address(const struct sctp_paddr_change *change) {
    const char *what = change->spc_state == SCTP_ADDR_ADDED       ? "added"
                       : change->spc_state == SCTP_ADDR_CONFIRMED ? "confirmed"
                       : change->spc_state == SCTP_ADDR_MADE_PRIM ? "primary"
                       : change->spc_state == SCTP_ADDR_REMOVED   ? "removed"
                       : change->spc_state == SCTP_ADDR_AVAILABLE ? "available"
                                                                  : "unreachable";
    char text[INET_ADDRSTRLEN] = "";
    const struct sockaddr_in *of = (const struct sockaddr_in *)&change->spc_aaddr;
    inet_ntop(AF_INET, &of->sin_addr, text, sizeof text);
    printf("%s %s\n", what, text);
}

/* Prints a notification. Returns whether the association continues. */
static int tell(const union sctp_notification *news) {
    if (news->sn_header.sn_type == SCTP_PEER_ADDR_CHANGE) tell_address(&news->sn_paddr_change);
    if (news->sn_header.sn_type != SCTP_ASSOC_CHANGE) return 1;
    switch (news->sn_assoc_change.sac_state) {
    case SCTP_COMM_UP: printf("up\n"); return 1;
    case SCTP_RESTART: printf("restarted\n"); return 1;
    case SCTP_SHUTDOWN_COMP: return 0;
    default: printf("lost\n"); return 0;
    }
}

/* --- sockets ----------------------------------------------------------------------------------------------------- */

static void set(struct socket *sock, int level, int option, const void *value, socklen_t length) {
    if (usrsctp_setsockopt(sock, level, option, value, length) != 0) {
        fprintf(stderr, "option 0x%x: ", (unsigned)option);
        fail("setsockopt");
    }
}

static struct socket *open_socket(const char *local, const char *port) {
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (sock == NULL) fail("socket");
    const int on = 1, size = BUFFER;
    set(sock, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
    set(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    set(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    const uint16_t news[] = {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE};
    for (size_t i = 0; i < sizeof news / sizeof *news; i++) {
        const struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = news[i], .se_on = 1};
        set(sock, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
    }
    struct sockaddr_in own = address(local, port);
    if (usrsctp_bind(sock, (struct sockaddr *)&own, sizeof own) != 0) fail("bind");
    return sock;
}

/* --- what is asked of it - */

static const char *own_port;
static atomic_bool enough;

static void change(struct socket *sock, const char *verb, const char *text) {
    struct sockaddr_in own = address(text, own_port);
    int result;
    if (strcmp(verb, "primary") == 0) {
        struct sctp_setpeerprim request = {.sspp_assoc_id = SCTP_FUTURE_ASSOC};
        memcpy(&request.sspp_addr, &own, sizeof own);
        result = usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &request, sizeof request);
    } else {
        const int flag = strcmp(verb, "add") == 0 ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR;
        result = usrsctp_bindx(sock, (struct sockaddr *)&own, 1, flag);
    }
    if (result != 0) fail(verb);
}

static void *obey(void *sock) {
    char line[128], verb[32], text[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strcmp(line, "finish\n") == 0) atomic_store(&enough, 1);
        if (sscanf(line, "%31s %63s", verb, text) == 2) change(sock, verb, text);
    }
    return NULL;
}

static pthread_t obey_from_now_on(struct socket *sock) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, obey, sock) != 0) fail("thread");
    return thread;
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

/* Receives until the association ends. The received bytes are written to `file`, if it is not NULL. */
static void receive(struct socket *sock, FILE *file) {
    static char buffer[BUFFER];
    uint64_t bytes = 0, first = 0, last = 0;
    for (;;) {
        int flags = 0;
        unsigned int type = 0;
        struct sockaddr_in from; /* not used, but usrsctp_recvv needs the storage */
        struct sctp_rcvinfo info;
        socklen_t from_length = sizeof from, info_length = sizeof info;
        ssize_t length = usrsctp_recvv(sock, buffer, sizeof buffer, (struct sockaddr *)&from, &from_length, &info,
                                       &info_length, &type, &flags);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) break;
        if ((flags & MSG_NOTIFICATION) != 0) {
            if (!tell((const union sctp_notification *)buffer)) break;
            continue;
        }
        last = micros();
        if (bytes == 0) first = last;
        bytes += (uint64_t)length;
        if (file != NULL && fwrite(buffer, 1, (size_t)length, file) != (size_t)length) fail("write");
    }
    if (file != NULL && fclose(file) != 0) fail("write");
    printf("done %llu %llu\n", (unsigned long long)bytes, (unsigned long long)(last - first));
}

struct job {
    struct socket *sock;
    uint64_t bytes;
};

static void *send_all(void *argument) {
    const struct job *job = argument;
    static unsigned char buffer[MESSAGE];
    struct sctp_sndinfo info = {.snd_sid = 0};
    uint64_t done = 0;
    while (done < job->bytes && !atomic_load(&enough)) {
        uint64_t length = job->bytes - done < MESSAGE ? job->bytes - done : MESSAGE;
        for (uint64_t i = 0; i < length; i++) {
            buffer[i] = (unsigned char)(31 * (done + i) + (done + i) / 251);
        }
        if (usrsctp_sendv(job->sock, buffer, length, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0) {
            fail("send");
        }
        done += length;
    }
    printf("sent %llu\n", (unsigned long long)done);
    if (usrsctp_shutdown(job->sock, SHUT_WR) != 0) fail("shutdown");
    return NULL;
}

int main(int argc, char **argv) {
    const int receives = argc == 5 && strcmp(argv[1], "receive") == 0;
    const int sends = argc == 7 && strcmp(argv[1], "send") == 0;
    if (!receives && !sends) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    usrsctp_init(0, NULL, NULL);
    usrsctp_sysctl_set_sctp_auto_asconf(0); /* addresses change when the test says so */
    usrsctp_sysctl_set_sctp_heartbeat_interval_default(1000); /* ms: a new address whose heartbeat was lost */
    own_port = argv[3];
    struct socket *sock = open_socket(argv[2], argv[3]);
    pthread_t obeys;
    if (receives) {
        if (usrsctp_listen(sock, 1) != 0) fail("listen");
        printf("ready\n");
        FILE *file = strcmp(argv[4], "-") == 0 ? NULL : fopen(argv[4], "wb");
        struct socket *one = usrsctp_accept(sock, NULL, NULL);
        if (one == NULL) fail("accept");
        obeys = obey_from_now_on(one);
        receive(one, file);
    } else {
        struct sockaddr_in to = address(argv[4], argv[5]);
        if (usrsctp_connect(sock, (struct sockaddr *)&to, sizeof to) != 0) fail("connect");
        obeys = obey_from_now_on(sock);
        struct job job = {sock, strtoull(argv[6], NULL, 10)};
        pthread_t thread;
        if (pthread_create(&thread, NULL, send_all, &job) != 0) fail("thread");
        receive(sock, NULL);
    }
    fflush(stdout);
    pthread_join(obeys, NULL);
    /* Not tidied up: its threads and sockets end with it. */
    _exit(0);
}

/*
 * Preloaded, it delays one process of a lab: each frame that it reads is given to it 3 ms later.
 *
 *   LATE=node        the daemons
 *   LATE=lab-supervisor   the link emulator
 */
#define _GNU_SOURCE
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int is_late;

__attribute__((constructor)) static void begin(int count, char **words) {
    const char *which = getenv("LATE");
    is_late = which != NULL && count > 1 && strcmp(words[1], which) == 0;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    ssize_t got = (ssize_t)syscall(SYS_recvmsg, fd, message, flags);
    const struct sockaddr *from = message->msg_name;
    if (is_late && got > 0 && from != NULL && from->sa_family == AF_PACKET) {
        struct timespec span = {.tv_nsec = 3000000};
        nanosleep(&span, NULL);
    }
    return got;
}

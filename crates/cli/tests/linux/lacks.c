/*
 * Preloaded, it makes calls through libc fail as on a kernel without the feature that LACKS names.
 *
 *   LACKS=TCP_REPAIR   a kernel without CONFIG_CHECKPOINT_RESTORE
 *   LACKS=AF_PACKET    a process without CAP_NET_RAW
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int lacks(const char *what) {
    const char *all = getenv("LACKS");
    return all != NULL && strcmp(all, what) == 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    if (level == IPPROTO_TCP && name == TCP_REPAIR && lacks("TCP_REPAIR")) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

int socket(int domain, int type, int protocol) {
    if (domain == AF_PACKET && lacks("AF_PACKET")) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}

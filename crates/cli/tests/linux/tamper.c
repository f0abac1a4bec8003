/*
 * Does to a run what no link does.
 *
 *   trace PID MS          stops a process as a debugger does, for MS milliseconds
 *   double DEVICE COUNT   sends the first COUNT frames of IPv4 that leave this device again
 *   copy DEVICE COUNT PID FAR   sends the first COUNT frames of IPv4 that come in at this device on the device FAR of
 *                         the network namespace of that process
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms) {
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

static int trace(pid_t pid, long ms) {
    int status;
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 ||
        waitpid(pid, &status, __WALL) != pid) {
        perror("ptrace");
        return 1;
    }
    for (; ms > 0; ms -= 10) {
        pause_ms(ms < 10 ? ms : 10);
        /* The parent is notified of the end of the process only after the tracer. */
        if (waitpid(pid, &status, WNOHANG | __WALL) == pid && (WIFEXITED(status) || WIFSIGNALED(status))) {
            return 0;
        }
    }
    return ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0;
}

static int listen_on(const char *device) {
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    at.sll_ifindex = (int)if_nametoindex(device);
    if (fd < 0 || at.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror(device);
        exit(1);
    }
    return fd;
}

/* Sends the next `count` IPv4 frames that leave, or that arrive, again on `out`. */
static int again(int fd, int out, int leaves, int count) {
    unsigned char frame[65536];
    while (count > 0) {
        struct sockaddr_ll from;
        socklen_t room = sizeof from;
        ssize_t got = recvfrom(fd, frame, sizeof frame, 0, (struct sockaddr *)&from, &room);
        if (got < 0) {
            perror("receive");
            return 1;
        }
        if ((from.sll_pkttype == PACKET_OUTGOING) != leaves || from.sll_protocol != htons(ETH_P_IP)) {
            continue;
        }
        if (send(out, frame, (size_t)got, 0) != got) {
            perror("send");
            return 1;
        }
        count--;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "trace") == 0) {
        return trace(atoi(argv[2]), atol(argv[3]));
    }
    if (argc == 4 && strcmp(argv[1], "double") == 0) {
        int fd = listen_on(argv[2]);
        return again(fd, fd, 1, atoi(argv[3]));
    }
    if (argc == 6 && strcmp(argv[1], "copy") == 0) {
        char path[64];
        int fd = listen_on(argv[2]), there;
        snprintf(path, sizeof path, "/proc/%d/ns/net", atoi(argv[4]));
        there = open(path, O_RDONLY | O_CLOEXEC);
        if (there < 0 || setns(there, CLONE_NEWNET) != 0) {
            perror(path);
            return 1;
        }
        return again(fd, listen_on(argv[5]), 0, atoi(argv[3]));
    }
    fprintf(stderr, "usage: tamper trace PID MS | double DEVICE COUNT | copy DEVICE COUNT PID FAR\n");
    return 2;
}

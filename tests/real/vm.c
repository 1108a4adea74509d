/* The program of the units in the machine that tests/real/vm boots: static, driven by its arguments. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

static void stay(void) {
    signal(SIGTERM, leave);
    for (;;) pause();
}

/* Memory that is really there; `flags` may ask for huge pages. */
static char *take(size_t bytes, int flags) {
    /* Nobody is to be told beforehand that there is not so much. */
    if (!(flags & MAP_HUGETLB)) flags |= MAP_NORESERVE;
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (start == MAP_FAILED) {
        printf("mmap: %s\n", strerror(errno));
        exit(12);
    }
    /* Page by page, so that it can be counted where they are. */
    if (!(flags & MAP_HUGETLB)) madvise(start, bytes, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes; at += 4096) start[at] = 1;
    return start;
}

/* The line of /proc/self/numa_maps about it. */
static void tell(const char *start) {
    char line[512], address[32];
    snprintf(address, sizeof address, "%lx ", (unsigned long)start);
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (!strncmp(line, address, strlen(address))) printf("maps: %s", line);
    fflush(stdout);
}

static int listening(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 8)) {
        perror("bind");
        exit(98);
    }
    return fd;
}

int main(int count, char **words) {
    const char *verb = count > 1 ? words[1] : "serve";
    long number = count > 2 ? atol(words[2]) : 0;
    if (!strcmp(verb, "eat")) {
        take(number << 20, 0);
    } else if (!strcmp(verb, "eat-in-a-child")) {
        int status = 0;
        if (fork() == 0) {
            take(number << 20, 0);
            _exit(0);
        }
        wait(&status);
        return WIFSIGNALED(status) ? 3 : 4;
    } else if (!strcmp(verb, "numa")) {
        tell(take(number << 20, 0));
    } else if (!strcmp(verb, "huge")) {
        tell(take(number << 21, MAP_HUGETLB));
    } else if (!strcmp(verb, "forks")) {
        long made = 0;
        for (; made < number; made++) {
            pid_t pid = fork();
            if (pid == 0) stay();
            if (pid < 0) break;
        }
        printf("forked %ld\n", made);
    } else if (!strcmp(verb, "spin")) {
        signal(SIGTERM, leave);
        for (;;) __asm__ volatile("");
    } else if (!strcmp(verb, "orphans")) {
        for (long i = 0; i < number; i++) {
            pid_t pid = fork();
            if (pid == 0) {
                if (fork() == 0) _exit(0);
                _exit(0);
            }
            waitpid(pid, NULL, 0);
        }
        return 0;
    } else if (!strcmp(verb, "hidden")) {
        /* Nothing left that tells whose it is: its session, its name, its environment, its descriptors. */
        prctl(PR_SET_NAME, "nobodys");
        for (;;) pause();
    } else if (!strcmp(verb, "tree")) {
        int up[2];
        if (pipe(up)) return 1;
        if (fork() == 0) {
            setsid();
            if (fork()) _exit(0);
            close(up[0]);
            int fd = listening((int)number), null = open("/dev/null", O_RDWR);
            if (write(up[1], "1", 1) != 1) _exit(1);
            for (int to = 0; to < 3; to++) dup2(null, to);
            for (int other = 3; other < 64; other++)
                if (other != fd) close(other);
            char *argv[] = {"idle", "hidden", NULL}, *none[] = {NULL};
            signal(SIGTERM, SIG_IGN);
            execve("/bin/work", argv, none);
            _exit(1);
        }
        char one;
        close(up[1]);
        wait(NULL);
        if (read(up[0], &one, 1) != 1) return 98;
    }
    puts("up");
    fflush(stdout);
    stay();
}

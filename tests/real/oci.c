/* The program of the image that tests/real/oci runs: static, driven by its arguments. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t pressed;

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

/* TERM is answered by work of one second, whose end is said. */
static void work(int signal) {
    (void)signal;
    sleep(1);
    if (write(1, "child done\n", 11) != 11) _exit(1);
    _exit(0);
}

static void press(int signal) {
    (void)signal;
    pressed++;
}

static int is(int count, char **words, const char *word) { return count > 1 && !strcmp(words[1], word); }

static void up(void) {
    puts("up");
    fflush(stdout);
}

int main(int count, char **words) {
    if (count > 2 && is(count, words, "exit")) return atoi(words[2]);
    if (is(count, words, "segv")) raise(SIGSEGV);
    if (count > 2 && is(count, words, "orphans"))
        for (int i = 0; i < atoi(words[2]); i++) {
            pid_t pid = fork();
            if (pid == 0) {
                if (fork() == 0) _exit(0);
                _exit(0);
            }
            waitpid(pid, NULL, 0);
        }
    if (is(count, words, "child") || is(count, words, "session")) {
        int ready[2];
        char byte;
        if (pipe(ready)) return 1;
        if (fork() == 0) {
            if (is(count, words, "session")) setsid();
            signal(SIGTERM, work);
            close(ready[0]);
            close(ready[1]);
            for (;;) pause();
        }
        close(ready[1]);
        if (read(ready[0], &byte, 1) != 0) return 1;
    }
    if (is(count, words, "plain")) {
        up();
        for (;;) pause();
    }
    if (is(count, words, "keys")) {
        signal(SIGINT, press);
        up();
        while (!pressed) pause();
        /* A second one would be counted, too. */
        usleep(500000);
        printf("INT %d\n", (int)pressed);
        return 5;
    }
    signal(SIGTERM, leave);
    signal(SIGHUP, leave);
    up();
    for (;;) pause();
}

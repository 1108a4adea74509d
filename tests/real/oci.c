/* The program of the image that tests/real/oci runs: static, driven by its arguments. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "exit")) return atoi(words[2]);
    if (count > 1 && !strcmp(words[1], "segv")) raise(SIGSEGV);
    if (count > 2 && !strcmp(words[1], "orphans"))
        for (int i = 0; i < atoi(words[2]); i++) {
            pid_t pid = fork();
            if (pid == 0) {
                if (fork() == 0) _exit(0);
                _exit(0);
            }
            waitpid(pid, NULL, 0);
        }
    if (count > 2 && !strcmp(words[1], "child") && fork() == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        sleep(1);
        puts("child done");
        return 0;
    }
    signal(SIGTERM, leave);
    signal(SIGHUP, leave);
    puts("up");
    fflush(stdout);
    for (;;) pause();
}

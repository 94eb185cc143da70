// Preloaded into a program: once its libraries are loaded and relocated, and before its main begins, it becomes a server that forks a
// child for each run. Descriptors: 0 is the socket (SOCK_SEQPACKET), 1 and 2 are /dev/null, 3 is this library.
//
// A request is one packet: struct request, then the arguments, each ended by a NUL; with it come the working folder and the file
// for its output. The reply is a struct answer. A first reply, before any request, announces that the server is ready.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most_text = 1 << 16, most_arguments = 1 << 12, failed = 125 };

struct request { uint64_t memory_bytes, processor_seconds; };
struct answer { int32_t status, unused; int64_t microseconds; };

typedef int main_function(int, char **, char **);
static main_function *program;

static int64_t microseconds(struct timeval t) { return t.tv_sec * INT64_C(1000000) + t.tv_usec; }

static void limit(int resource, rlim_t value) {
	struct rlimit l = {value, value};
	if (setrlimit(resource, &l) != 0) _exit(failed);
}

// run is the child, which ends with its server.
static void run(pid_t server, const struct request *r, char *text, size_t size, int dir, int output) {
	static char *arguments[most_arguments + 1];
	int n = 0;
	for (char *at = text; at < text + size; at += strlen(at) + 1) {
		if (n == most_arguments) _exit(failed);
		arguments[n++] = at;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != server) _exit(failed);
	if (fchdir(dir) != 0 || dup2(1, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(failed);
	close(dir);
	close(output);
	limit(RLIMIT_AS, r->memory_bytes);
	limit(RLIMIT_CPU, r->processor_seconds);
	exit(program(n, arguments, environ));
}

// receive returns the size of a request with both of its files; the server ends when there are no more.
static size_t receive(char *packet, int files[2]) {
	union { struct cmsghdr header; char space[CMSG_SPACE(2 * sizeof(int))]; } control;
	struct iovec where = {packet, most_text};
	struct msghdr message = {.msg_iov = &where, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t size = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
	if (size <= 0) _exit(0);
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if ((size_t)size <= sizeof(struct request) || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || c == NULL ||
		c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(2 * sizeof(int)) || packet[size - 1] != 0) _exit(failed);
	memcpy(files, CMSG_DATA(c), 2 * sizeof(int));
	return size;
}

static void answer(struct answer a) {
	if (send(0, &a, sizeof a, MSG_NOSIGNAL) != sizeof a) _exit(0);
}

static int serve(int argc, char **argv, char **environment) {
	static _Alignas(struct request) char packet[most_text];
	(void)argc, (void)argv, (void)environment;
	unsetenv("LD_PRELOAD"); // what the program starts is not to become a server
	close(3);
	answer((struct answer){0});
	for (;;) {
		int files[2];
		size_t size = receive(packet, files);
		pid_t server = getpid(), child = fork();
		if (child < 0) _exit(failed);
		if (child == 0) run(server, (void *)packet, packet + sizeof(struct request), size - sizeof(struct request), files[0], files[1]);
		close(files[0]);
		close(files[1]);
		struct answer a = {0};
		struct rusage used;
		if (wait4(child, &a.status, 0, &used) != child) _exit(failed);
		a.microseconds = microseconds(used.ru_utime) + microseconds(used.ru_stime);
		answer(a);
	}
}

typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

// The program's start calls this one in place of libc's, which gets another main.
int __libc_start_main(main_function *m, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*loader_fini)(void), void *stack) {
	start_function *libc = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
	program = m;
	return libc(serve, argc, argv, init, fini, loader_fini, stack);
}

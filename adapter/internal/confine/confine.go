// Package confine takes from a process all that it does not need to serve connections that it already has.
package confine

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Account returns the identity of an account for a child of root, without further groups; nil if this process is not root.
func Account(name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	return Credential(u)
}

// Credential returns the identity of a user's processes, without further groups.
func Credential(u *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Self bounds this process's memory, and leaves it only system calls on what it has open: it opens no file, makes no connection, starts no
// program, and signals, traces, or limits no other process, whatever account it has. Open listeners go on accepting, and
// it can neither close nor disturb them for others that have them, too.
func Self(memory int64) error {
	debug.SetMemoryLimit(memory / 2)
	err := errors.Join(
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(memory), Max: uint64(memory)}),
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if e := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); e != nil {
		return errors.Join(err, e)
	}
	arch, known := arches[runtime.GOARCH]
	if !known {
		return errors.Join(err, fmt.Errorf("no filter of system calls for %s", runtime.GOARCH))
	}
	program := filter(arch, uint32(os.Getpid()))
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog))); e != 0 {
		return errors.Join(err, fmt.Errorf("seccomp: %w", e))
	}
	return err
}

var arches = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// allowed lists what the runtimes of Go and C and net/http need.
var allowed = []uint32{
	unix.SYS_READ, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK,
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_RECVFROM, unix.SYS_RECVMSG,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PIPE2, unix.SYS_PPOLL,
	unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETRANDOM, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// filter returns the program that the kernel runs at each system call.
func filter(arch, pid uint32) []unix.SockFilter {
	const (
		number, architecture, argument = 0, 4, 16 // in struct seccomp_data; the low half of the first argument, eight bytes before the next
		refuse                         = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: otherwise}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	threads := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_THREAD, Jf: 1}
	noConnect := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.MSG_FASTOPEN, Jt: 1}

	all := []unix.SockFilter{load(architecture), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1}, answer(refuse), load(number)}
	for _, call := range allowed {
		all = append(all, equal(call, 1), answer(unix.SECCOMP_RET_ALLOW))
	}
	// some allows a call if one of the tests of an argument succeeds; each skips what follows it otherwise.
	some := func(call, of uint32, tests ...unix.SockFilter) {
		all = append(all, equal(call, uint8(2*len(tests)+2)), load(argument+8*of))
		for _, test := range tests {
			all = append(all, test, answer(unix.SECCOMP_RET_ALLOW))
		}
		all = append(all, answer(refuse))
	}
	// set allows some options of a level. Others would last in listeners, such as a filter that drops what arrives.
	set := func(level uint32, options ...uint32) {
		tests := uint8(2 * len(options))
		all = append(all, equal(unix.SYS_SETSOCKOPT, tests+4), load(argument+8), equal(level, tests+2), load(argument+2*8))
		for _, option := range options {
			all = append(all, equal(option, 1), answer(unix.SECCOMP_RET_ALLOW))
		}
		all = append(all, answer(refuse), load(number))
	}
	set(unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	set(unix.IPPROTO_TCP, unix.TCP_NODELAY, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT)
	some(unix.SYS_CLONE, 0, threads)
	some(unix.SYS_TGKILL, 0, equal(pid, 1)) // Go interrupts its own threads
	some(unix.SYS_PRLIMIT64, 0, equal(0, 1))
	some(unix.SYS_FCNTL, 1, equal(unix.F_DUPFD_CLOEXEC, 1), equal(unix.F_GETFD, 1), equal(unix.F_SETFD, 1), equal(unix.F_GETFL, 1), equal(unix.F_SETFL, 1)) // F_SETOWN has the kernel send signals
	some(unix.SYS_SHUTDOWN, 1, equal(unix.SHUT_WR, 1))
	some(unix.SYS_SENDTO, 3, noConnect)
	some(unix.SYS_SENDMSG, 2, noConnect)
	return append(all,
		equal(unix.SYS_CLONE3, 1), answer(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)), // then the C library calls clone
		answer(refuse))
}

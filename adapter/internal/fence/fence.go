// Package fence runs a command only while its sender may act. A process that was stopped between its check and
// its command, and goes on minutes later, thus changes nothing.
//
// A program that imports the package becomes the fence when it is run as [Command] says, before its main: it
// sets an alarm that survives exec and ends the command at the deadline, even if the command was stopped meanwhile,
// compares the clock with the deadline again, and only then executes the command in its place. The clock counts
// while the machine sleeps, and is never set.
package fence

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mark    = "--evoslurm-fence"
	expired = 75 // EX_TEMPFAIL
)

// Now returns the time since the machine was booted, in which it slept or not.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux since 2.6.39 has this clock
	}
	return time.Duration(ts.Nano())
}

// Command returns the command that runs another one, a path and its arguments, before a time of Now.
func Command(before time.Duration, argv ...string) []string {
	return append([]string{"/proc/self/exe", mark, strconv.FormatInt(int64(before), 10)}, argv...)
}

func init() {
	if len(os.Args) < 4 || os.Args[1] != mark {
		return
	}
	before, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err == nil {
		err = execute(time.Duration(before), os.Args[3:])
	}
	fmt.Fprintf(os.Stderr, "evoslurm: %s was not run: %v\n", os.Args[3], err)
	os.Exit(expired)
}

// execute replaces this process by the command; it returns only if it fails.
func execute(before time.Duration, argv []string) error {
	left := before - Now()
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Value: unix.NsecToTimeval(int64(max(left, time.Microsecond)))}); err != nil {
		return err
	}
	if Now() >= before {
		return errors.New("the lease of this sidecar has run out")
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

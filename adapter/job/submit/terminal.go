package submit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal returns both sides of a pseudoterminal that passes bytes on as they are.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	var modes *unix.Termios
	if err == nil {
		modes, err = unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	}
	if err == nil {
		modes.Oflag &^= unix.OPOST // no carriage returns
		modes.Lflag &^= unix.ECHO
		err = unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes)
	}
	if err != nil {
		if slave != nil {
			err = errors.Join(err, slave.Close())
		}
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

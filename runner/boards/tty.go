package boards

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const usualBaud = 115200

// speeds maps speeds to the constants of termios.
var speeds = map[uint32]uint32{
	9600: unix.B9600, 19200: unix.B19200, 38400: unix.B38400, 57600: unix.B57600, 115200: unix.B115200, 230400: unix.B230400, 460800: unix.B460800,
	500000: unix.B500000, 921600: unix.B921600, 1000000: unix.B1000000, 1500000: unix.B1500000, 2000000: unix.B2000000, 3000000: unix.B3000000,
}

// openTTY opens a serial line in raw mode: 8 bits, no parity, no flow control.
func openTTY(path string, baud uint32) (*os.File, error) {
	baud = cmp.Or(baud, usualBaud)
	speed, ok := speeds[baud]
	if !ok {
		return nil, fmt.Errorf("serial lines have no speed of %d baud; use 115200, 921600 or another usual one", baud)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not a serial line: %w", path, err), unix.Close(fd))
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | speed
	t.Ispeed, t.Ospeed = speed, speed
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return nil, errors.Join(fmt.Errorf("setting %s to %d baud: %w", path, baud, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

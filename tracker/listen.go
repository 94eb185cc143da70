package tracker

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Listen listens on host:port or unix:path. The socket of a tracker that was killed is taken over; that of one that
// lives is not.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix {
		lis, err := net.Listen("tcp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen on %s: it is in use (a running tracker?): stop it or choose another address", addr)
		}
		return lis, err
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: it is in use (a running tracker?): stop it or choose another address", addr)
	}
	// Other files refuse connections too, and are not ours to remove.
	if info, statErr := os.Stat(path); errors.Is(err, syscall.ECONNREFUSED) && statErr == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	}
	return net.Listen("unix", path)
}

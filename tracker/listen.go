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

// Listen listens on host:port or unix:path. It replaces the socket of a tracker that was killed, but not that of a
// running one.
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
	// Other kinds of files refuse connections too; do not remove them.
	if info, statErr := os.Stat(path); errors.Is(err, syscall.ECONNREFUSED) && statErr == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	}
	return net.Listen("unix", path)
}

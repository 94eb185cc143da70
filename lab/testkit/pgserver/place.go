package pgserver

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Place describes where a server runs. The zero value is this machine, with a socket only.
type Place struct {
	// Folder is the parent of the server's folder; empty means the folder of temporary files.
	Folder string
	// Network is the path of its network namespace; empty means this process's.
	Network string
	// Address is its listen address in the namespace, without authentication and TLS; empty means none.
	Address string
	// Settings are lines of its configuration. A standby inherits those of its primary.
	Settings []string
}

// admitted returns the pg_hba.conf lines that admit its network.
func (p Place) admitted() []string {
	if p.Address == "" {
		return nil
	}
	return []string{"host all all samenet trust", "host replication all samenet trust"}
}

// within runs start in the place's network namespace. The calling thread must be locked. It returns to its namespace,
// because its end would kill the processes started on it.
func (p Place) within(start func() error) (err error) {
	if p.Network == "" {
		return start()
	}
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("network of the server: %w", err)
	}
	defer own.Close()
	other, err := os.Open(p.Network)
	if err != nil {
		return fmt.Errorf("network of the server: %w", err)
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("network of the server: %s: %w", p.Network, err)
	}
	return errors.Join(start(), unix.Setns(int(own.Fd()), unix.CLONE_NEWNET))
}

package pgserver

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Place is where a server runs. The zero value is this machine, on which a server has a socket only.
type Place struct {
	// Folder is where its own folder is made; empty = among temporary files.
	Folder string
	// Network is the file of the network namespace that it runs in; empty = this process's.
	Network string
	// Address is where it listens there, for anybody of its network and without TLS; empty = nowhere.
	Address string
	// Settings are lines of its configuration. A standby has its primary's.
	Settings []string
}

// admitted are the lines that let others of its network in.
func (p Place) admitted() []string {
	if p.Address == "" {
		return nil
	}
	return []string{"host all all samenet trust", "host replication all samenet trust"}
}

// within has a process started by the calling thread, which is locked, in the network of the place. The thread goes
// back to where it was: when it ended, whatever else was started on it would be killed.
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

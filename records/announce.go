package records

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// servedSuffix is what is added to a records file's name for the link to the socket of the process that has it open.
const servedSuffix = ".socket"

// answersWithin is far longer than a socket here takes to answer.
const answersWithin = time.Second

// Announce tells others that the process that has a records file open answers for it at a socket, until Retract. Who
// was killed leaves an announcement, which the next one replaces.
func Announce(path, socket string) error {
	link, err := servedLink(path)
	if err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("announce who has records file %s open: %w", path, err)
	}
	if err := os.Symlink(socket, link); err != nil {
		return fmt.Errorf("announce who has records file %s open: %w", path, err)
	}
	return nil
}

// Retract ends an announcement. It is for the process that has the file open still.
func Retract(path string) error {
	link, err := servedLink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody removed the file
	} else if err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("retract who has records file %s open: %w", path, err)
	}
	return nil
}

// Announced is the socket at which a process answers that has a records file open; empty when none does.
func Announced(path string) string {
	link, err := servedLink(path)
	if err != nil {
		return ""
	}
	socket, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	conn, err := net.DialTimeout("unix", socket, answersWithin)
	if err != nil {
		return ""
	}
	conn.Close()
	return socket
}

func servedLink(path string) (string, error) {
	whole, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return whole + servedSuffix, nil
}

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

// servedSuffix is appended to a records file's name for the link to the socket of the process that has it open.
const servedSuffix = ".socket"

// answersWithin is far longer than a local socket takes to answer.
const answersWithin = time.Second

// Announce publishes the socket at which the process that has a records file open can be reached, until Retract. The
// announcement of a killed process stays until the next one replaces it.
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

// Retract removes an announcement. The caller must still have the file open.
func Retract(path string) error {
	link, err := servedLink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the file was removed
	} else if err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("retract who has records file %s open: %w", path, err)
	}
	return nil
}

// Announced returns the socket of the process that has a records file open, or "" if none answers.
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

package pgserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var (
	initdbArgs = []string{"-U", User, "-A", "trust", "-E", "UTF8", "--no-locale", "--data-checksums", "--no-sync"}
	// settings trade durability for speed. Place.Settings follow and take precedence.
	settings = []string{"fsync = off", "full_page_writes = off"}
)

// copyTemplate copies the files of a new server from the user's cache. If they are missing, it runs initdb, which
// takes a second of processor time.
func (s *Server) copyTemplate() error {
	template, err := s.templateFolder()
	if err != nil {
		return s.initdb() // no cache
	}
	if _, err := os.Stat(template); err == nil {
		return copyFolder(template, s.data())
	}
	if err := s.initdb(); err != nil {
		return err
	}
	return s.keepTemplate(template)
}

// templateFolder returns the folder of the template for this user and version.
func (s *Server) templateFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version, err := exec.Command(filepath.Join(s.programs, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("postgres --version: %w", err)
	}
	key := sha256.Sum256(fmt.Appendln(version, s.programs, os.Getuid(), initdbArgs, settings))
	return filepath.Join(cache, "tilth-test", fmt.Sprintf("postgres-%x", key[:8])), nil
}

func (s *Server) initdb() error {
	out, err := s.command("initdb", append([]string{"-D", s.data()}, initdbArgs...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return s.addLines("postgresql.conf", settings...)
}

// keepTemplate copies the new server's files into the cache. Another process may do so first.
func (s *Server) keepTemplate(template string) error {
	if err := os.MkdirAll(filepath.Dir(template), 0o755); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(filepath.Dir(template), "new")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	copied := filepath.Join(folder, "data")
	if err := copyFolder(s.data(), copied); err != nil {
		return err
	}
	if err := os.Rename(copied, template); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// copyFolder copies a folder, preserving owners and modes.
func copyFolder(from, to string) error {
	if out, err := exec.Command("cp", "-a", "--", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, strings.TrimSpace(string(out)))
	}
	return nil
}

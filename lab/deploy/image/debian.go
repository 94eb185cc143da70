package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	copying "github.com/containerd/continuity/fs"
)

// installed returns the packages of a command line that installs some with apt-get.
func installed(line string) (packages []string, installs bool) {
	for command := range strings.SplitSeq(line, "&&") {
		words := strings.Fields(command)
		if len(words) < 2 || words[0] != "apt-get" || words[1] != "install" {
			continue
		}
		installs = true
		for _, word := range words[2:] {
			if !strings.HasPrefix(word, "-") {
				packages = append(packages, word)
			}
		}
	}
	return packages, installs
}

// mergedFolders are links into /usr.
var mergedFolders = []string{"bin", "sbin", "lib", "lib64"}

// layDebian lays what Debian's smallest system has: the essential packages and apt, the links that merge /usr, and
// what their scripts make of users and of the linker's cache.
func layDebian(ctx context.Context, dir string) error {
	all, err := packageTable(ctx)
	if err != nil {
		return err
	}
	names := []string{"apt"}
	for name, p := range all {
		if p.essential {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range mergedFolders {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "usr", name), 0o755),
			os.Symlink("usr/"+name, filepath.Join(dir, name))); err != nil {
			return err
		}
	}
	if err := layPackages(ctx, dir, names, true); err != nil {
		return err
	}
	for _, name := range []string{"passwd", "group"} {
		if err := copying.CopyFile(filepath.Join(dir, "etc", name),
			filepath.Join(dir, "usr/share/base-passwd", name+".master")); err != nil {
			return err
		}
	}
	if said, err := exec.CommandContext(ctx, "ldconfig", "-r", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("ldconfig: %w: %s", err, said)
	}
	return nil
}

// layPackages lays files of packages that are installed here, with all that they depend on or alone.
func layPackages(ctx context.Context, dir string, names []string, withDependencies bool) error {
	if withDependencies {
		all, err := packageTable(ctx)
		if err != nil {
			return err
		}
		if names, err = all.closure(names); err != nil {
			return err
		}
	}
	listed, err := exec.CommandContext(ctx, "dpkg-query", append([]string{"--listfiles"}, names...)...).Output()
	if err != nil {
		return fmt.Errorf("files of Debian's packages %s: %w; run scripts/packages.sh test", strings.Join(names, " "), err)
	}
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if !strings.HasPrefix(path, "/") || path == "/." || left(path) {
			continue
		}
		path = merged(path)
		if err := lay(path, filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	return nil
}

// merged is where a file of a package lies in a system whose /bin, /sbin and /lib are links into /usr.
func merged(path string) string {
	first, _, _ := strings.Cut(path[1:], "/")
	if slices.Contains(mergedFolders, first) || first == "lib32" || first == "libx32" {
		return "/usr" + path
	}
	return path
}

// left reports whether small images omit a file.
func left(path string) bool {
	for _, dir := range []string{"/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/",
		"/usr/share/lintian/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// lay hard-links a file of this machine into an image, because lower layers are never written.
func lay(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		// It was removed here; its users will fail if they need it.
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return layFolder(to, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return unlessThere(os.Symlink(target, to))
	}
	if err := os.Link(from, to); !errors.Is(err, syscall.EXDEV) {
		return unlessThere(err)
	}
	return errors.Join(copying.CopyFile(to, from), os.Chown(to, owner(info), group(info)), os.Chmod(to, info.Mode()))
}

func layFolder(to string, info fs.FileInfo) error {
	if there, err := os.Stat(to); err == nil && there.IsDir() {
		return nil
	}
	return errors.Join(os.MkdirAll(to, info.Mode()), os.Chown(to, owner(info), group(info)), os.Chmod(to, info.Mode()))
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
func group(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }

func unlessThere(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

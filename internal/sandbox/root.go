package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// libraries lists the locations of loaders, C libraries and other shared libraries, the loader's cache, and
// Debian's alternatives, such as those of BLAS.
var libraries = []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/alternatives",
	"/nix/store", "/gnu/store"}

// addedLibraries returns the folders that the machine's owner added to the loader's configuration, such as
// CUDA's, without missing or nested ones.
func addedLibraries(folders []string) (added []string) {
	for _, path := range slices.Sorted(slices.Values(folders)) {
		held := func(l string) bool { return path == l || within(path, l) }
		holds := func(l string) bool { return within(l, path) }
		if info, err := os.Stat(path); err != nil || !info.IsDir() || slices.ContainsFunc(slices.Concat(libraries, added), held) || slices.ContainsFunc(libraries, holds) {
			continue
		}
		added = append(added, path)
	}
	return added
}

func within(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// rootBytes and rootFiles limit the mount points; the files themselves are bind mounts.
const (
	rootBytes = 1 << 20
	rootFiles = 16 << 10
)

// root describes a new file tree in a folder.
type root struct {
	*script
	dir  string
	made map[string]bool
	// added lists machine-specific library folders.
	added []string
}

// newRoot mounts an empty tree on a folder. The child has its own mounts, so other processes do not see the tree.
func (s *script) newRoot(dir string, added []string) *root {
	s.layer = Files
	s.ownMounts()
	s.mount("mount a root", "tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", rootBytes, rootFiles))
	return &root{s, dir, map[string]bool{"/": true}, added}
}

// show makes a file or folder visible at its path. It shows the target of a link in place of the link.
func (r *root) show(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	r.folder(filepath.Dir(path))
	if r.made[path] {
		return nil
	}
	r.made[path] = true
	inside := r.dir + path
	if info.IsDir() {
		r.add("make folder "+path, unix.SYS_MKDIRAT, atFDCWD, r.text(inside), 0o755)
	} else {
		r.add("make file "+path, unix.SYS_MKNODAT, atFDCWD, r.text(inside), unix.S_IFREG|0o444, 0)
	}
	r.mount("show "+path, path, inside, "", unix.MS_BIND|unix.MS_REC, "")
	return nil
}

// showLibrary shows a library location, or recreates a link between such locations.
func (r *root) showLibrary(path string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return r.show(path)
	}
	r.folder(filepath.Dir(path))
	r.made[path] = true
	r.add("link "+path, unix.SYS_SYMLINKAT, r.text(target), atFDCWD, r.text(r.dir+path))
	return nil
}

// folder creates a folder and its parents. One inside a shown folder already exists.
func (r *root) folder(path string) {
	if r.made[path] || r.shown(path) {
		return
	}
	r.folder(filepath.Dir(path))
	r.made[path] = true
	r.add("make folder "+path, unix.SYS_MKDIRAT, atFDCWD, r.text(r.dir+path), 0o755)
}

func (r *root) shown(path string) bool {
	return slices.ContainsFunc(slices.Concat(libraries, r.added), func(l string) bool { return r.made[l] && within(path, l) })
}

// showAll shows the existing libraries and further files by their absolute names.
func (r *root) showAll(files []string) error {
	for _, path := range libraries {
		if err := r.showLibrary(path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for _, path := range slices.Concat(r.added, files) {
		if r.shown(path) {
			continue
		}
		if err := r.show(path); err != nil {
			return err
		}
	}
	return nil
}

// processes shows the process itself for emulators, which read their memory map. It is optional.
func (r *root) processes() {
	r.folder("/proc")
	r.mountProc(r.dir + "/proc").optional = true
}

// enter makes the tree read-only and the child's root.
func (r *root) enter() {
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	r.add("make the root read-only", unix.SYS_MOUNT_SETATTR, atFDCWD, r.text(r.dir), unix.AT_RECURSIVE, at(r.script, attributes), unix.MOUNT_ATTR_SIZE_VER0)
	r.add("go to the root", unix.SYS_CHDIR, r.text(r.dir))
	r.add("change the root", unix.SYS_PIVOT_ROOT, r.text("."), r.text("."))
	r.add("leave the old root", unix.SYS_UMOUNT2, r.text("."), unix.MNT_DETACH)
	r.add("go to the new root", unix.SYS_CHDIR, r.text("/"))
}

// settings lists files of /proc by which root changes the machine, even without capabilities. Containers
// mount them read-only; a fresh /proc would not.
var settings = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// procFlags are the usual mount flags of /proc, which contains no programs or devices.
const procFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountsProc reports whether programs get a /proc of their namespace. Programs that see the machine's files
// need it, because the machine's /proc lacks the ids of their threads.
func (s *Sandbox) mountsProc() bool { return s.ownProc && s.has[Processes] && !s.has[Files] }

// newProc mounts /proc for the child's namespace, with read-only settings.
func (s *script) newProc() {
	s.layer = Processes
	s.ownMounts()
	s.mountProc("/proc")
	for _, path := range settings {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue // not every kernel has all of them
		}
		s.mount("mount "+path, path, path, "", unix.MS_BIND, "")
		s.mount("protect "+path, "", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|procFlags, "")
	}
}

// ownMounts makes the child's mounts private.
func (s *script) ownMounts() {
	s.mount("keep mounts to itself", "", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// mountProc mounts /proc for the child's namespace.
func (s *script) mountProc(dir string) *call {
	return s.mount("mount "+dir, "proc", dir, "proc", procFlags, "")
}

const loaderConfiguration = "/etc/ld.so.conf"

// libraryFolders returns the folders added to the loader's defaults, such as that of CUDA, in the order of
// /etc/ld.so.conf and its included files (ldconfig(8)). It returns none if the file does not exist.
func libraryFolders() []string { return loaderFolders(loaderConfiguration) }

// FindLibrary returns the path of a library in the first of these folders that contains it, or "".
func FindLibrary(soname string) string { return findLibrary(libraryFolders(), soname) }

func findLibrary(folders []string, soname string) string {
	for _, dir := range folders {
		path := filepath.Join(dir, soname)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func loaderFolders(path string) []string {
	r := loaderReader{seen: map[string]bool{}}
	r.file(path)
	return r.folders
}

// loaderReader collects folders. It reads each file once, because files may include each other.
type loaderReader struct {
	seen    map[string]bool
	folders []string
}

func (r *loaderReader) file(path string) {
	text, err := os.ReadFile(path)
	if err != nil || r.seen[path] {
		return // unreadable files are ignored, as by the loader's own tools
	}
	r.seen[path] = true
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if patterns := strings.Fields(line); len(patterns) > 1 && patterns[0] == "include" {
			r.include(filepath.Dir(path), patterns[1:])
		} else if filepath.IsAbs(line) {
			r.folders = append(r.folders, filepath.Clean(line))
		}
	}
}

func (r *loaderReader) include(dir string, patterns []string) {
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		files, _ := filepath.Glob(pattern) // none for a bad pattern
		for _, path := range files {
			r.file(path)
		}
	}
}

package filesystem

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyRegularFilesAreRead covers what is not a file, without a writer for the pipe.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	in := func(name string) string { return filepath.Join(folder, name) }
	err := errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(in("inner"), 0o700), unix.Mkfifo(in("pipe"), 0o600), os.Symlink("/dev/zero", in("device")),
		os.WriteFile(in("file"), []byte("text"), 0o600), os.WriteFile(filepath.Join(dir, "outside"), []byte("secret"), 0o600),
		os.Symlink("file", in("link")), os.Symlink("../outside", in("leaves")), os.Symlink("/etc/passwd", in("absolute")),
		os.WriteFile(in("large"), []byte("large"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder) // the path of a socket is short
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, want := range map[string]string{
		"file": "", "link": "", "leaves": "escapes", "absolute": "escapes", "device": "escapes", "large": "has more than 4 bytes",
		"pipe": "pipe is not a regular file", "inner": "is a directory", "socket": "socket is not a regular file",
	} {
		if _, err := ReadRegularIn(folder, name, 4); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"pipe", "socket", "device"} {
		if f, err := OpenRegular(in(name)); err == nil {
			t.Errorf("%s was opened: %v", name, f.Close())
		}
	}
}

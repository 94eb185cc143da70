package postgres_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/testkit/pgserver"
)

// A network that is slow makes a store slow, and nothing else: what waits goes together.
func TestASlowNetworkLosesNothing(t *testing.T) {
	address, err := server.Database()
	if err != nil {
		t.Fatal(err)
	}
	line := newLine(t, server)
	db := openedSoon(t, line.through(address))
	line.slow(20 * time.Millisecond)
	settled(t, db, write(db, 1, 500))
	if n := stored(t, db); n != 500 {
		t.Errorf("%d writes are stored", n)
	}
	// So slow that no transaction comes to its end: it is tried again, and stored once.
	away := make(chan error, 100)
	db.OnAway(func(why error) { away <- why })
	line.slow(impatience)
	waiting := write(db, 501, 10)
	if why := await(t, away); !errors.Is(why, records.ErrAway) {
		t.Errorf("the server is away for %v", why)
	}
	line.slow(0)
	settled(t, db, waiting)
	if n := stored(t, db); n != 510 {
		t.Errorf("%d writes are stored", n)
	}
}

// smallDisk is a file system of 128 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a small file system")
	}
	folder, err := os.MkdirTemp("", "pgdisk")
	if err == nil {
		t.Cleanup(func() { os.Remove(folder) })
		err = os.Chmod(folder, 0o755) // the server is another user's
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=128m,mode=755"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// A server whose disk is full stores nothing, whether it says so or crashes: writes wait until there is room.
func TestAServerWithoutRoomLosesNothing(t *testing.T) {
	disk := smallDisk(t)
	server, err := pgserver.NewIn(disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	address, err := server.Database()
	if err != nil {
		t.Fatal(err)
	}
	db := openedSoon(t, address)
	settled(t, db, write(db, 1, 10))
	away := make(chan error, 100)
	db.OnAway(func(why error) { away <- why })
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	waiting := write(db, 11, 5000)
	if why := await(t, away); !errors.Is(why, records.ErrAway) {
		t.Errorf("the server is away for %v", why)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is back", func() bool {
		if server.Ended() { // it cannot go on where its log has no room
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		return db.Away() == nil
	})
	settled(t, db, waiting)
	if n := stored(t, db); n != 5010 {
		t.Errorf("%d writes are stored", n)
	}
}

// fill writes a file until its disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<16)
	for ; err == nil; _, err = f.Write(chunk) {
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

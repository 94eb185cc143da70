package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/records/postgres"
)

// cluster is a database of two servers: a primary and a synchronous standby that can be promoted.
type cluster struct {
	*testing.T
	servers [2]*member
	address string // of both servers, for trackers
	name    string // database name

	mu      sync.Mutex
	primary int
}

// member is a server of a cluster.
type member struct {
	*pgserver.Server
	disk string // dedicated small disk, if mounted

	mu   sync.Mutex // guards starting and stopping
	down int        // number of active faults that keep it down
}

func serverAt(n int) string { return fmt.Sprint("db-", n+1) }

// settings make servers detect a partition within seconds and use little space.
var settings = []string{
	"max_connections = 200", "wal_sender_timeout = 5s", "wal_receiver_timeout = 5s", "wal_retrieve_retry_interval = 500ms",
	"max_wal_size = 64MB", "min_wal_size = 32MB",
}

// newCluster creates a cluster on two hosts of a network.
func newCluster(t *testing.T, net *network) *cluster {
	t.Helper()
	c := &cluster{T: t}
	for n := range c.servers {
		m := &member{disk: newDisk(t)}
		place := pgserver.Place{Folder: m.disk, Network: filepath.Join("/run/netns", net.space(serverAt(n))), Address: net.addr(serverAt(n)), Settings: settings}
		var err error
		if n == 0 {
			m.Server, err = pgserver.NewAt(place)
		} else {
			m.Server, err = pgserver.StandbyAt(place, c.servers[0].Folder(), net.addr(serverAt(0)))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Stop(); err != nil {
				t.Error(err)
			}
		})
		c.servers[n] = m
	}
	address, err := c.servers[0].Database()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(address, ":///")
	c.name, _, _ = strings.Cut(rest, "?")
	c.address = fmt.Sprintf("postgres://%s@%s,%s/%s?sslmode=disable", pgserver.User, net.addr(serverAt(0)), net.addr(serverAt(1)), c.name)
	if err := makeTables(address); err != nil {
		t.Fatal(err)
	}
	if err := c.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.servers[0].WaitForStandby(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// makeTables creates the store's tables, so that they can be watched.
func makeTables(address string) error {
	db, err := postgres.Open(address, postgres.Options{Shards: someShards})
	if err != nil {
		return err
	}
	return db.Close()
}

// diskSize leaves some space to a server with little data.
const diskSize = "160m"

// newDisk mounts a small disk for one server.
func newDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "db-") // short: it contains sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// socket returns the address of the database on its primary, for this process.
func (c *cluster) socket() string {
	p := c.servers[c.first()]
	return p.Address(p.Folder(), c.name)
}

func (c *cluster) first() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

// keep restarts servers that ended by themselves, such as for lack of space, until ctx ends.
func (c *cluster) keep(ctx context.Context) {
	for retry.Sleep(ctx, 100*time.Millisecond) == nil {
		for _, m := range c.servers {
			m.mu.Lock()
			if m.down == 0 && m.Ended() {
				_ = m.Start() // space may still be lacking
			}
			m.mu.Unlock()
		}
	}
}

// kill kills the server. release lets it restart.
func (m *member) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down++
	m.Kill()
}

func (m *member) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down--
}

// stand stops or continues all processes of the server.
func (m *member) stand(still bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if still {
		m.Freeze()
	} else {
		m.Thaw()
	}
}

// failOver kills the primary and promotes the standby once possible.
func (c *cluster) failOver(ctx context.Context) error {
	old := c.first()
	c.servers[old].kill()
	for {
		err := c.promote(ctx, c.servers[1-old])
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.primary = 1 - old
			return nil
		}
		if stopped := retry.Sleep(ctx, 200*time.Millisecond); stopped != nil {
			return fmt.Errorf("promote the standby: %w", err)
		}
	}
}

func (c *cluster) promote(ctx context.Context, m *member) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, m.Address(m.Folder(), c.name))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	var promoted bool
	err = conn.QueryRow(ctx, "SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote(true, 4) ELSE true END").Scan(&promoted)
	if err == nil && !promoted {
		err = errors.New("it takes its time")
	}
	return err
}

// settle waits until the primary answers after all faults have ended.
func (c *cluster) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	p := c.servers[c.first()]
	for {
		p.mu.Lock()
		err := error(nil)
		if p.Ended() {
			err = p.Start()
		}
		p.mu.Unlock()
		if err == nil {
			err = p.Do(ctx, "SELECT 1")
		}
		if err == nil {
			return nil
		}
		if retry.Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("the database does not come back: %w", err)
		}
	}
}

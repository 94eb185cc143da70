package postgres_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
)

type direction int

const (
	toServer direction = iota
	toClient
)

// line is a proxy to a server with network faults.
type line struct {
	folder string
	lis    net.Listener

	mu     sync.Mutex
	server *pgserver.Server
	// lost marks the directions in which data is dropped.
	lost [2]bool
	// unaware holds the ends that did not see the other end close.
	unaware []net.Conn
	delay   time.Duration // latency
	passed  int           // number of connections
	asked   int           // number of messages from clients
	ends    map[net.Conn]bool
	isCut   bool
	// onCommit, if set, breaks the connection at the next commit. Its value decides whether the server receives the
	// commit.
	onCommit *bool
	breaks   int
	// loseAt, if set, is text in a message to the server. From that message on, all data in both directions is
	// dropped, and lostAt is closed.
	loseAt []byte
	lostAt chan struct{}
	all    sync.WaitGroup
}

func newLine(t *testing.T, server *pgserver.Server) *line {
	t.Helper()
	l := &line{server: server, folder: t.TempDir(), ends: map[net.Conn]bool{}}
	var err error
	if l.lis, err = net.Listen("unix", filepath.Join(l.folder, filepath.Base(server.Socket()))); err != nil {
		t.Fatal(err)
	}
	l.all.Go(l.accept)
	t.Cleanup(func() {
		l.lis.Close()
		l.cut()
		l.all.Wait()
	})
	return l
}

// through returns the address of a database through the line.
func (l *line) through(address string) string {
	return strings.Replace(address, l.to().Folder(), l.folder, 1)
}

func (l *line) accept() {
	for {
		client, err := l.lis.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", l.to().Socket())
		if err != nil || !l.add(client, server) {
			client.Close()
			continue
		}
		var silenced atomic.Bool // the client receives no more answers
		l.all.Go(func() { l.carry(client, server, toServer, &silenced) })
		l.all.Go(func() { l.carry(server, client, toClient, &silenced) })
	}
}

func (l *line) add(client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		server.Close()
		return false
	}
	l.ends[client], l.ends[server] = true, true
	l.passed++
	return true
}

// connections returns the number of connections so far.
func (l *line) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed
}

// questions returns the number of messages from clients so far, which is the number of round trips.
func (l *line) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *line) to() *pgserver.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// lead forwards to another server from now on.
func (l *line) lead(to *pgserver.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = to
}

// lose drops all data in a direction without notifying the sender.
func (l *line) lose(way direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[way] = true
}

// loseAtText drops all data in both directions from the next message to the server that contains text. It then closes
// the channel.
func (l *line) loseAtText(text string) (lost <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loseAt, l.lostAt = []byte(text), make(chan struct{})
	return l.lostAt
}

// loseFrom applies loseAt to a message to the server.
func (l *line) loseFrom(message []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loseAt != nil && bytes.Contains(message, l.loseAt) {
		l.loseAt, l.lost = nil, [2]bool{true, true}
		close(l.lostAt)
	}
}

// slow sets the latency.
func (l *line) slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// close closes the end that data in a direction goes to, at once or when the line is mended.
func (l *line) close(to net.Conn, way direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost[way] {
		l.unaware = append(l.unaware, to)
	} else {
		to.Close()
	}
}

// arrives waits for the latency of the line, and reports whether the data arrives.
func (l *line) arrives(way direction) bool {
	l.mu.Lock()
	delay, lost := l.delay, l.lost[way]
	if way == toServer {
		l.asked++
	}
	l.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	return !lost
}

// commitMessage is the driver's message for a commit.
var commitMessage = []byte("Q\x00\x00\x00\x0bcommit\x00")

// carry copies data in one direction until either end closes. While data is lost, the other end does not see that.
func (l *line) carry(from, to net.Conn, way direction, silenced *atomic.Bool) {
	defer from.Close()
	defer l.close(to, way)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || silenced.Load() { // the first data is the answer to the commit
			return
		}
		if way == toServer {
			l.loseFrom(buffer[:n])
		}
		if !l.arrives(way) {
			continue
		}
		if bytes.Equal(buffer[:n], commitMessage) {
			if takesPlace := l.nextCommit(); takesPlace != nil && !*takesPlace {
				return
			} else if takesPlace != nil {
				silenced.Store(true)
			}
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// breakAtCommit breaks the connection at the next commit, before or after it takes place.
func (l *line) breakAtCommit(takesPlace bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onCommit = &takesPlace
}

func (l *line) nextCommit() (takesPlace *bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if takesPlace, l.onCommit = l.onCommit, nil; takesPlace != nil {
		l.breaks++
	}
	return takesPlace
}

func (l *line) broken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.breaks
}

// cut breaks all connections and refuses new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for end := range l.ends {
		end.Close()
	}
	clear(l.ends)
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut, l.lost = false, [2]bool{}
	for _, end := range l.unaware {
		end.Close()
	}
	l.unaware = nil
}

// connect opens a connection for the test itself.
func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// do executes a statement in a database.
func do(t *testing.T, address, sql string) {
	t.Helper()
	conn := connect(t, address)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// ask queries a row of a database.
func ask(t *testing.T, address, sql string, to ...any) {
	t.Helper()
	conn := connect(t, address)
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(to...); err != nil {
		t.Fatal(err)
	}
}

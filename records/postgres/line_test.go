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

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/testkit/pgserver"
)

// line is a way to a server that a test may cut.
type line struct {
	server *pgserver.Server
	folder string
	lis    net.Listener

	mu    sync.Mutex
	ends  map[net.Conn]bool
	isCut bool
	// onCommit, when set, is whether the next commit comes to the server before its connection breaks.
	onCommit *bool
	breaks   int
	all      sync.WaitGroup
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

// through is the address of a database by this line.
func (l *line) through(address string) string {
	return strings.Replace(address, l.server.Folder(), l.folder, 1)
}

func (l *line) accept() {
	for {
		client, err := l.lis.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", l.server.Socket())
		if err != nil || !l.add(client, server) {
			client.Close()
			continue
		}
		var deaf atomic.Bool // the client hears no more answers
		l.all.Go(func() { l.carry(client, server, &deaf) })
		l.all.Go(func() { l.carry(server, client, &deaf) })
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
	return true
}

// commitMessage is how the driver has a transaction committed, in a message of its own.
var commitMessage = []byte("Q\x00\x00\x00\x0bcommit\x00")

// carry copies what comes from one end to the other, until one of them is closed.
func (l *line) carry(from, to net.Conn, deaf *atomic.Bool) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || deaf.Load() { // what comes first is the answer to the commit
			return
		}
		if bytes.Equal(buffer[:n], commitMessage) {
			if takesPlace := l.nextCommit(); takesPlace != nil && !*takesPlace {
				return
			} else if takesPlace != nil {
				deaf.Store(true)
			}
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// breakAtCommit has the line break at the next commit, which takes place or not.
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

// cut breaks all connections, and lets none be made.
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
	l.isCut = false
}

// do has a statement done in a database.
func do(t *testing.T, address, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

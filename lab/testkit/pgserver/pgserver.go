package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// User is a superuser, who needs no password.
	User = "tilth"
	// UID of the server if the test runs as root, because PostgreSQL refuses root.
	nobody = 65534
	// startTimeout is generous: a start after a crash on a busy machine takes far less.
	startTimeout = time.Minute
)

// Server is a PostgreSQL server, which may have been killed.
type Server struct {
	folder, programs string
	addresses        string // on the network; empty = socket only
	place            Place
	output           bytes.Buffer // belongs to the process until ended is closed
	process          *os.Process
	ended            chan struct{}
}

// New creates and starts a server. The error explains what to install if PostgreSQL is missing.
func New() (*Server, error) { return NewAt(Place{Folder: os.TempDir()}) }

// ForTest starts a server that the test may kill, and returns it with the address of an empty database. Tests that
// only need a database should use the far cheaper DatabaseForTest.
func ForTest(t testing.TB) (server *Server, address string) {
	t.Helper()
	server, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if address, err = server.Database(); err != nil {
		t.Fatal(err)
	}
	return server, address
}

// shared is the server of DatabaseForTest.
var shared struct {
	sync.Mutex
	server *Server
}

// DatabaseForTest returns the address of an empty database on a server shared by all tests of this process. The first
// call starts the server. The package's TestMain must use Tests, which stops it.
func DatabaseForTest(t testing.TB) (address string) {
	t.Helper()
	address, err := sharedDatabase()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func sharedDatabase() (address string, err error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		if shared.server, err = NewAt(Place{Settings: []string{"max_connections = 400"}}); err != nil {
			return "", err
		}
	}
	return shared.server.Database()
}

// Tests runs a package's tests and then stops the server of DatabaseForTest.
type Tests struct{ *testing.M }

// Run runs the tests and returns their exit status.
func (m Tests) Run() (code int) {
	code = m.M.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	shared.server = nil
	return code
}

// NewAt is New at a place.
func NewAt(place Place) (*Server, error) { return made(place, (*Server).initialise) }

// made returns a started server whose files init creates.
func made(place Place, init func(*Server) error) (*Server, error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(place.Folder, "pg") // short: a socket's path is limited to about a hundred bytes
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, programs: programs, addresses: place.Address, place: place}
	if os.Getuid() == 0 {
		err = os.Chown(folder, nobody, nobody)
	}
	if err == nil {
		err = init(s)
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// At returns a server that another process runs.
func At(folder string) *Server { return &Server{folder: folder} }

// Folder returns the folder of the server's socket, by which other processes find it.
func (s *Server) Folder() string { return s.folder }

// find returns the folder of the server's programs, which Debian does not add to PATH.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 {
		return "", errors.New("postgresql is not installed: run scripts/packages.sh test")
	}
	return filepath.Dir(slices.Max(all)), nil
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, name), args...)
	cmd.Dir = s.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

// initialise creates the files of a new server.
func (s *Server) initialise() error {
	if err := s.copyTemplate(); err != nil {
		return err
	}
	return errors.Join(s.addLines("pg_hba.conf", s.place.admitted()...), s.addLines("postgresql.conf", s.place.Settings...))
}

// addLines appends lines to one of the server's files.
func (s *Server) addLines(name string, lines ...string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, line := range lines {
		_, failed := f.WriteString(line + "\n")
		err = errors.Join(err, failed)
	}
	return errors.Join(err, f.Close())
}

// Start starts a killed server and waits until it answers.
func (s *Server) Start() error {
	if err := s.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if s.Do(ctx, "SELECT 1") == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("postgres ended: %s", s.output.String())
		case <-ctx.Done():
			return errors.New("postgres does not answer")
		case <-tick.C:
		}
	}
}

// launch starts the process. It dies with the thread that starts it, so that thread waits for it.
func (s *Server) launch() error {
	s.output.Reset()
	s.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.ended)
		cmd := s.command("postgres", "-D", s.data(), "-k", s.folder, "-c", "listen_addresses="+s.addresses, "-c", "shared_buffers=32MB")
		cmd.Stdout, cmd.Stderr = &s.output, &s.output
		err := s.place.within(cmd.Start)
		s.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return <-started
}

// Kill kills all processes of the server at once, like a crash.
func (s *Server) Kill() {
	// The child processes end once they notice. The next start waits for them.
	s.end(syscall.SIGKILL)
}

func (s *Server) end(signal syscall.Signal) {
	if s.process != nil {
		s.Thaw() // no signal except SIGKILL reaches a frozen process
		_ = s.process.Signal(signal)
		<-s.ended
		s.process = nil
	}
}

// Stop stops the server and removes its files.
func (s *Server) Stop() error {
	s.end(syscall.SIGQUIT)
	return os.RemoveAll(s.folder)
}

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.folder, ".s.PGSQL.5432") }

// Database creates an empty database and returns its address. Copying files takes a third of the processor time of
// writing pages to the log, the default.
func (s *Server) Database() (address string, err error) {
	name := "d" + strings.ToLower(rand.Text())
	return s.Address(s.folder, name), s.Do(context.Background(), "CREATE DATABASE "+name+" STRATEGY FILE_COPY")
}

// Do executes a statement in the default database.
func (s *Server) Do(ctx context.Context, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.Address(s.folder, "postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	return errors.Join(err, conn.Close(ctx))
}

// Address returns the address of a database by the folder of a socket.
func (s *Server) Address(folder, database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=%s", database, folder, User)
}

// Ended reports whether the server ended by itself.
func (s *Server) Ended() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

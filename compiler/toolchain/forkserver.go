package toolchain

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// ForkServerSource is the C source of the preloaded library, to be compiled as a shared object for this machine.
//
//go:embed src/serve.c
var ForkServerSource string

// ForkExit is the outcome of a run.
type ForkExit struct {
	Status syscall.WaitStatus
	// Used is the processor time of the run.
	Used time.Duration
}

// ForkServer runs a program many times and loads it once. Loading clang, which relocates a hundred megabytes of
// libraries, takes longer than compiling a small kernel. A preloaded library stops the program before main and
// forks a child for each run, a technique of fuzzers (AFL's fork server). It requires a dynamically linked glibc
// program with a single thread at the start of main; StartForkServer fails otherwise. A ForkServer is not safe for
// concurrent use, except for Kill.
type ForkServer struct {
	process *sandbox.Process
	conn    *net.UnixConn
}

// loading limits the time to load a program.
const loading = 30 * time.Second

// StartForkServer loads a program with the library. The server is killed when this process ends.
func StartForkServer(box *sandbox.Sandbox, program string, library *os.File, environment []string) (*ForkServer, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("fork server: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "server"), os.NewFile(uintptr(ends[1]), "requests")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, fmt.Errorf("fork server: %w", err)
	}
	s := &ForkServer{conn: conn.(*net.UnixConn)}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer null.Close()
	s.process, err = box.Start(sandbox.Command{
		Program: program, Environment: append(environment, "LD_PRELOAD=/proc/self/fd/3"),
		Descriptors: []*os.File{theirs, null, null, library},
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = theirs.Close() // so that conn reports when the server exits
	if _, err := s.answer(time.Now().Add(loading)); err != nil {
		s.Close()
		return nil, fmt.Errorf("fork server for %s: not started: %w", program, err)
	}
	return s, nil
}

// Request starts a run of the program in a directory, with stdout and stderr redirected to a file. Arguments start
// with the program's name. Call Wait before the next Request. After an error, only Close may be called.
func (s *ForkServer) Request(dir *os.File, arguments []string, output *os.File, l sandbox.Limits) error {
	request := binary.NativeEndian.AppendUint64(nil, uint64(l.MemoryBytes))
	request = binary.NativeEndian.AppendUint64(request, uint64((l.ProcessorTime+time.Second-1)/time.Second))
	request = append(request, strings.Join(arguments, "\x00")+"\x00"...)
	if _, _, err := s.conn.WriteMsgUnix(request, unix.UnixRights(int(dir.Fd()), int(output.Fd())), nil); err != nil {
		return fmt.Errorf("fork server: %w", err)
	}
	return nil
}

// Wait waits for the end of the run. An error means that the server was killed; only Close may be called then.
func (s *ForkServer) Wait() (ForkExit, error) { return s.answer(time.Time{}) }

// answer waits for the server's reply; an error means that the server has exited.
func (s *ForkServer) answer(deadline time.Time) (ForkExit, error) {
	if err := s.conn.SetReadDeadline(deadline); err != nil {
		return ForkExit{}, fmt.Errorf("fork server: %w", err)
	}
	var a struct {
		Status, _    int32
		Microseconds int64
	}
	packet := make([]byte, binary.Size(a))
	n, err := s.conn.Read(packet)
	if err != nil {
		return ForkExit{}, fmt.Errorf("fork server: no answer: %w", err)
	}
	if err := binary.Read(bytes.NewReader(packet[:n]), binary.NativeEndian, &a); err != nil {
		return ForkExit{}, fmt.Errorf("fork server: truncated answer: %w", err)
	}
	return ForkExit{syscall.WaitStatus(a.Status), time.Duration(a.Microseconds) * time.Microsecond}, nil
}

// Kill kills the server and the current run.
func (s *ForkServer) Kill() { s.process.KillGroup() }

// Close stops the server.
func (s *ForkServer) Close() {
	_ = s.conn.Close()
	_, _, _ = s.process.End()
}

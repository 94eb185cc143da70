package s3server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// AccessKey is the access key that all servers accept, with SecretKey.
	AccessKey = "tilth"
	// SecretKey is the secret of AccessKey.
	SecretKey = "tilth-tests-only"
	// Region is the servers' region.
	Region = "us-east-1"
	// startTimeout is generous: a start on a busy machine takes far less.
	startTimeout = time.Minute
)

// Server is an S3 server, which may have been killed.
type Server struct {
	program, folder, host string
	output                bytes.Buffer // belongs to the process until ended is closed
	process               *os.Process
	ended                 chan struct{}
}

// New creates and starts a server. It builds the program if necessary, which takes minutes.
func New() (*Server, error) {
	program, err := build()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "s3")
	if err != nil {
		return nil, err
	}
	host, err := freeHost()
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, folder: folder, host: host}
	err = errors.Join(os.Mkdir(s.root(), 0o755), os.Mkdir(s.attributes(), 0o755))
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// build returns the path of the program, whose version lab/tools/s3 pins.
func build() (string, error) {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	pinned := filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), "lab", "tools", "s3", "go.mod")
	var why bytes.Buffer
	cmd := exec.Command("go", "tool", "-modfile="+pinned, "-n", "versitygw")
	cmd.Stderr = &why
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("versitygw cannot be built, see lab/tools/s3: %w: %s", err, strings.TrimSpace(why.String()))
	}
	return strings.TrimSpace(string(path)), nil
}

// freeHost returns an unused local address.
func freeHost() (string, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return lis.Addr().String(), lis.Close()
}

func (s *Server) root() string       { return filepath.Join(s.folder, "root") }
func (s *Server) attributes() string { return filepath.Join(s.folder, "attributes") }

// Endpoint returns the server's URL.
func (s *Server) Endpoint() string { return "http://" + s.host }

// File returns the path of an object's file.
func (s *Server) File(bucket, name string) string { return filepath.Join(s.root(), bucket, name) }

// Start starts a killed server and waits until it answers.
func (s *Server) Start() error {
	if err := s.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client, err := s.client()
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err = client.ListBuckets(ctx); err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("versitygw ended: %s", s.output.String())
		case <-ctx.Done():
			return fmt.Errorf("versitygw does not answer: %w", err)
		case <-tick.C:
		}
	}
}

func (s *Server) client() (*minio.Client, error) {
	return minio.New(s.host, &minio.Options{
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region, MaxRetries: 1,
	})
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
		cmd := exec.Command(s.program, "--port", s.host, "--access", AccessKey, "--secret", SecretKey, "--region", Region,
			"--quiet", "posix", "--sidecar", s.attributes(), s.root())
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Stdout, cmd.Stderr = &s.output, &s.output
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait() // it was killed
		}
	}()
	return <-started
}

// Kill kills the server, like a crash.
func (s *Server) Kill() {
	if s.process != nil {
		_ = s.process.Kill()
		<-s.ended
		s.process = nil
	}
}

// Stop stops the server and removes its files.
func (s *Server) Stop() error {
	s.Kill()
	return os.RemoveAll(s.folder)
}

// MakeBucket creates an empty bucket.
func (s *Server) MakeBucket(name string) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	return client.MakeBucket(context.Background(), name, minio.MakeBucketOptions{})
}

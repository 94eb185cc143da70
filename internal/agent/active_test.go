package agent_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// standby serves a standby tracker at an address.
func standby(t *testing.T, network, address string, side *certs.Server) string {
	t.Helper()
	lis, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	host := tracker.NewHost(tracker.HostConfig{
		Security: tracker.Security{TLS: side}, Shards: 1, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	life, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- host.Serve(life, lis, nil) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

// list calls a tracker by a list of addresses.
func list(t *testing.T, addresses string, options ...grpc.DialOption) error {
	t.Helper()
	conn, err := agent.Dial(addresses, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = tilthv1.NewJobServiceClient(conn).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
	return err
}

// TestCallFindsTheTrackerThatServes checks that calls reach the serving tracker regardless of the order of
// addresses, past standby and stopped trackers.
func TestCallFindsTheTrackerThatServes(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	dir := t.TempDir()
	serves, stands, gone := "unix:"+filepath.Join(f.dir, "sock"), "unix:"+standby(t, "unix", filepath.Join(dir, "s"), nil), "unix:"+filepath.Join(dir, "gone")
	for _, all := range [][]string{{serves, stands}, {stands, serves}, {gone, stands, serves}, {serves, gone}, {gone, serves}} {
		if err := list(t, strings.Join(all, ",")); err != nil {
			t.Errorf("at %s: %v", all, err)
		}
	}
	for _, none := range []string{stands, gone + "," + stands} {
		if err := list(t, none); wire.Reason(err) != wire.ReasonStandby {
			t.Errorf("at %s: %v", none, err)
		}
	}
	if err := list(t, gone+","+gone+"2"); err == nil || !strings.Contains(wire.Explain("x", "list", err).Error(), "start it with") {
		t.Errorf("where nobody listens: %v", err)
	}
}

// TestEachTrackerProvesItsOwnName checks each address against the certificate of its own tracker.
func TestEachTrackerProvesItsOwnName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, err := certs.NewAuthority(time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := authority.Write(path("ca.crt"), path("ca.key")); err != nil {
		t.Fatal(err)
	}
	side := func(host string) *certs.Server {
		t.Helper()
		if err := authority.Server(path(host+".crt"), path(host+".key"), []string{host}, time.Now(), time.Hour); err != nil {
			t.Fatal(err)
		}
		s, err := certs.NewServer(certs.ServerConfig{Cert: path(host + ".crt"), Key: path(host + ".key")}, discard)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := standby(t, "tcp", "127.0.0.1:0", side("127.0.0.1")), serving(t, side("localhost"))
	_, port, err := net.SplitHostPort(second)
	if err != nil {
		t.Fatal(err)
	}
	proof := certs.Proof{TLS: certs.ClientConfig{CA: path("ca.crt")}}
	for addresses, well := range map[string]bool{first + ",localhost:" + port: true, first + "," + second: false} {
		options, err := proof.DialOptions(addresses, discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := list(t, addresses, options...); (err == nil) != well {
			t.Errorf("at %s: %v", addresses, err)
		}
	}
}

// serving serves a tracker without data at a local port.
func serving(t *testing.T, side *certs.Server) string {
	t.Helper()
	tr, err := tracker.New(tracker.Config{
		Store: storetest.Memory(t, bolt.Options{}), ArtifactsDir: t.TempDir(), Security: tracker.Security{TLS: side},
	})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- tr.Serve(t.Context(), lis, nil) }()
	t.Cleanup(func() { // the test's context has ended then
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

func TestListsOfAddressesAreChecked(t *testing.T) {
	for addresses, want := range map[string]string{
		"a:1,b": `"b" is not host:port`, "a:1,": `"" is not host:port`, "a:1,http://b:1": "leave http://",
		strings.Repeat("a:1,", 16) + "a:1": "want 16 at most",
	} {
		if _, err := agent.Dial(addresses); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", addresses, err)
		}
	}
}

// away serves a tracker that cannot reach its database, which another tracker may have taken over.
func away(t *testing.T, address string) string {
	t.Helper()
	lis, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return wire.Refuse(codes.Unavailable, wire.ReasonStoreAway, "the database server is unavailable")
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

func TestTrackerThatIsCutOffFromItsDatabaseKeepsNoCallers(t *testing.T) {
	f := newFarm(t)
	serves, cut := "unix:"+filepath.Join(f.dir, "sock"), "unix:"+away(t, filepath.Join(t.TempDir(), "s"))
	conn, err := agent.Dial(cut + "," + serves)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = retry.Do(t.Context(), discard, retry.Policy{First: time.Millisecond}, "list", func(ctx context.Context) error {
		_, err := tilthv1.NewJobServiceClient(conn).ListJobs(ctx, &tilthv1.ListJobsRequest{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStreamFindsTheTrackerThatServes checks that a stream is opened at the serving tracker, even if the first
// address only refuses it after it was opened.
func TestStreamFindsTheTrackerThatServes(t *testing.T) {
	f := newFarm(t)
	serves, stands := "unix:"+filepath.Join(f.dir, "sock"), "unix:"+standby(t, "unix", filepath.Join(t.TempDir(), "s"), nil)
	for _, addresses := range []string{stands + "," + serves, serves + "," + stands} {
		conn, err := agent.Dial(addresses)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := tilthv1.NewRecordServiceClient(conn).ListRecords(t.Context(), &tilthv1.ListRecordsRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("at %s: %v", addresses, err)
		}
	}
}

package farm

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access/certs"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// certificate returns a server certificate of a new CA.
func certificate(t *testing.T) *certs.Server {
	t.Helper()
	dir := t.TempDir()
	if _, err := (certs.Order{Hosts: []string{"localhost"}, Lifetime: time.Hour}).Make(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	s, err := certs.NewServer(certs.ServerConfig{Cert: filepath.Join(dir, "tracker.crt"), Key: filepath.Join(dir, "tracker.key")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// known is a tracker that counts the tokens that it receives.
type known struct {
	tilthv1.UnimplementedJobServiceServer
	tokens atomic.Int64
}

// serve serves until the test ends.
func (k *known) serve(t *testing.T, lis net.Listener, opts ...grpc.ServerOption) {
	t.Helper()
	server := grpc.NewServer(opts...)
	tilthv1.RegisterJobServiceServer(server, k)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func (k *known) ListOwners(ctx context.Context, _ *tilthv1.ListOwnersRequest) (*tilthv1.ListOwnersResponse, error) {
	if header, _ := metadata.FromIncomingContext(ctx); len(header.Get("authorization")) == 1 {
		k.tokens.Add(1)
	}
	return &tilthv1.ListOwnersResponse{}, nil
}

// listOwners calls another shard with a caller's token.
func listOwners(t *testing.T, o *peerTrackers) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // detects a hang
	defer cancel()
	return o.call(ctx, 1, "Bearer secret", tilthv1.JobService_ListOwners_FullMethodName, &tilthv1.ListOwnersRequest{}, &tilthv1.ListOwnersResponse{})
}

func newOthersUnderTest(t *testing.T, security tracker.Security, members ...records.Member) *peerTrackers {
	t.Helper()
	o, err := newOthers(security)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	o.update(members)
	return o
}

// TestTokenIsPassedOnlyToATrackerOfTheDatabase checks that tokens are only sent to trackers with the certificate
// registered in the database.
func TestTokenIsPassedOnlyToATrackerOfTheDatabase(t *testing.T) {
	theirs := certificate(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &known{}
	k.serve(t, lis, grpc.Creds(credentials.NewTLS(theirs.Config("h2"))))
	security := tracker.Security{TLS: certificate(t)}
	at := lis.Addr().String()
	if err := listOwners(t, newOthersUnderTest(t, security, records.Member{Address: at, Certificate: theirs.Digest()})); err != nil || k.tokens.Load() != 1 {
		t.Errorf("a tracker of the database is shown %d tokens, %v", k.tokens.Load(), err)
	}
	for what, pin := range map[string][]byte{"with another certificate": security.TLS.Digest(), "of which no certificate is known": nil} {
		err := listOwners(t, newOthersUnderTest(t, security, records.Member{Address: at, Certificate: pin}))
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "certificate that no tracker of the database has") || k.tokens.Load() != 1 {
			t.Errorf("a stranger %s is shown %d tokens, %v", what, k.tokens.Load()-1, err)
		}
	}
}

// TestTokenIsPassedInTheClearOnThisHostAlone checks that without certificates, the address 127.0.0.1 is only used
// for trackers registered on the same host.
func TestTokenIsPassedInTheClearOnThisHostAlone(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &known{}
	k.serve(t, lis)
	at := lis.Addr().String()
	if err := listOwners(t, newOthersUnderTest(t, tracker.Security{}, records.Member{Address: at, Host: thisHost()})); err != nil || k.tokens.Load() != 1 {
		t.Errorf("a tracker of this host is shown %d tokens, %v", k.tokens.Load(), err)
	}
	for what, host := range map[string][]byte{"of another host": []byte("another"), "of which no host is known": nil} {
		o := newOthersUnderTest(t, tracker.Security{}, records.Member{Address: at, Host: host})
		err := listOwners(t, o)
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "give the trackers certificates") || k.tokens.Load() != 1 {
			t.Errorf("a tracker %s is shown %d tokens, %v", what, k.tokens.Load()-1, err)
		}
	}
}

func TestTokenIsNotPassedOnInTheClear(t *testing.T) {
	err := listOwners(t, newOthersUnderTest(t, tracker.Security{}, records.Member{Address: "tracker2.example.com:9190"}))
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "give the trackers certificates") {
		t.Errorf("a token that would be sent in the clear: %v", err)
	}
}

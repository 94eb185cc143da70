package tracker_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestRateLimitedCallsAreRetried checks that generic clients receive a retry delay, and that Tilth's client retries by
// itself.
func TestRateLimitedCallsAreRetried(t *testing.T) {
	c := newClosed(t, false)
	c.stop()
	c.cfg.Security.CallsPerSecond = 20
	c.start()
	jobs := tilthv1.NewJobServiceClient(c.as("read-only"))
	for range 60 { // the burst limit is 40
		if _, err := jobs.ListOwners(t.Context(), &tilthv1.ListOwnersRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	conn := must[*grpc.ClientConn](t)(grpc.NewClient(c.rpc, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer conn.Close()
	plain := tilthv1.NewJobServiceClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+c.tokens["client"])
	var err error
	for range 2000 {
		if _, err = plain.ListOwners(ctx, &tilthv1.ListOwnersRequest{}); err != nil {
			break
		}
	}
	wantStatus(t, err, codes.ResourceExhausted, wire.ReasonRate, "client calls JobService.ListOwners too often: try again in ")
	if wait, is := wire.RetryAfter(err); !is || wait <= 0 {
		t.Errorf("it does not say when: %v", wait)
	}
}

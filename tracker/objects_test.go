package tracker_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	tilthfarm "github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/s3server"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// objectsEnv makes tracker processes use the object store at this address.
const objectsEnv = "TILTH_TEST_OBJECTS"

// TestTrackersThatShareAnObjectStoreServeEachOthersArtifacts runs two trackers with a common database and object
// store, but separate folders. It kills the object store and then one of the trackers during the jobs. No trial may
// be lost, repeated or given up, and each tracker must serve the other's artifacts.
func TestTrackersThatShareAnObjectStoreServeEachOthersArtifacts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it builds an object store")
	}
	server, err := s3server.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := server.MakeBucket("artifacts"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.SecretKey)
	t.Setenv(objectsEnv, fmt.Sprintf("s3://artifacts/farm?endpoint=%s&region=%s", server.Endpoint(), s3server.Region))
	database := pgserver.DatabaseForTest(t)
	a := newRivalOf(t, database, someShards)
	a.has(someShards)
	b := newRivalOf(t, database, someShards)
	b.has(someShards / 2)
	a.has(someShards / 2)

	jobs := newWatchedJobs(t, b.address()+","+a.address())
	jobs.submit("r")
	jobs.reach(50)
	server.Kill()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	jobs.reach(jobs.events.Load() + 50)
	a.kill()
	b.has(someShards)
	jobs.check()
	a.start()
	a.has(someShards / 2)
	b.has(someShards / 2)
	digests := objectsOf(t, server)
	if len(digests) < someShards*killBatches() {
		t.Errorf("%d artifacts are stored", len(digests))
	}
	for shard := range someShards {
		if n := a.servesArtifact(shard, digests[shard]) + b.servesArtifact(shard, digests[shard]); n != 1 {
			t.Errorf("%d trackers serve an artifact in shard %d", n, shard)
		}
	}
}

// TestTrackerThatOpensAnObjectStoreStopsAtOnce uses an object store that answers the probe, but not the listing.
func TestTrackerThatOpensAnObjectStoreStopsAtOnce(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.SecretKey)
	for _, shards := range []int{1, 2} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			listing := make(chan struct{}, 100)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("max-keys") == "1" {
					fmt.Fprint(w, `<ListBucketResult><Name>artifacts</Name><KeyCount>0</KeyCount></ListBucketResult>`)
					return
				}
				listing <- struct{}{}
				<-r.Context().Done()
			}))
			defer server.Close()
			dir := t.TempDir()
			cfg := tilthfarm.TrackerConfig{
				Shards: shards, Records: filepath.Join(dir, "tilth.db"), Listen: "unix:" + filepath.Join(dir, "sock"),
				ObjectStore: fmt.Sprintf("s3://artifacts/farm?endpoint=%s&region=%s", server.URL, s3server.Region),
				Tracker:     tracker.Config{ArtifactsDir: filepath.Join(dir, "artifacts"), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))},
			}
			if shards > 1 {
				cfg.Store = pgserver.DatabaseForTest(t)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- tilthfarm.RunTracker(ctx, cfg) }()
			select {
			case <-listing:
			case err := <-ended:
				t.Fatalf("it ended before it was stopped: %v", err)
			}
			stop()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Minute): // the listing may take a quarter of an hour
				t.Error("it waits for the listing")
				server.CloseClientConnections()
			}
		})
	}
}

// objectsOf returns the digests of the artifacts in an object store.
func objectsOf(t *testing.T, server *s3server.Server) (digests []string) {
	t.Helper()
	err := filepath.WalkDir(server.File("artifacts", "farm"), func(_ string, d fs.DirEntry, err error) error {
		if digest, _, _ := strings.Cut(d.Name(), "."); err == nil && records.ValidDigest(digest) {
			digests = append(digests, digest)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return digests
}

// servesArtifact returns 1 if this tracker has the shard and serves the artifact there, and 0 if it does not have the
// shard.
func (r *rival) servesArtifact(shard int, digest string) int {
	r.Helper()
	conn, err := grpc.NewClient(r.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(r.Context(), wire.ShardHeader, strconv.Itoa(shard)), 10*time.Minute)
	defer cancel()
	stream, err := tilthv1.NewArtifactServiceClient(conn).DownloadArtifact(ctx, &tilthv1.DownloadArtifactRequest{Digest: digest})
	if err != nil {
		r.Fatal(err)
	}
	m, err := stream.Recv()
	if wire.Reason(err) == wire.ReasonStandby {
		return 0
	}
	if err != nil || records.Digest(m.GetData()) != digest {
		r.Errorf("shard %d has %q of %s, %v", shard, m.GetData(), digest, err)
	}
	return 1
}

package staticsite_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/staticsite"
	"github.com/tilth-dev/tilth/records/storesync"
)

// newStore returns a store with two targets of four workloads each, and another workload with many records.
func newStore(t *testing.T, many int64) records.Store {
	t.Helper()
	s := storetest.Memory(t, bolt.Options{})
	w := &records.Write{}
	for _, target := range []string{"cpu", "gpu"} {
		for n, workload := range []string{"conv", "pool", "dense"} {
			for second := range int64(20) {
				r := storetest.Record(target, workload, second, 0.5+float64(second%7))
				r.JobId, r.Measurement.Candidate.Numerics = "job-1", []string{"strict", "default", "fast"}[(second+int64(n))%3]
				w.AddRecord(r)
			}
		}
		w.AddRecord(storetest.Record(target, "failed", 1, 0))
	}
	for second := range many {
		w.AddRecord(storetest.Record("cpu", "many", second, 0.5))
	}
	if err := s.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s records.Store, dir string) uint64 {
	t.Helper()
	n, err := staticsite.Write(dir, sourceOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sourceOf(t *testing.T, s records.Store) staticsite.Source {
	return staticsite.Source{
		List: func(visit func(*tilthv1.Record) error) error { return s.List(t.Context(), "", "", visit) },
		Best: func(of records.Group, numerics string) (*tilthv1.Record, error) {
			r, err := s.BestAllowed(of.Target, of.Workload, numerics)
			if errors.Is(err, records.ErrNotFound) {
				return nil, nil
			}
			return r, err
		},
		LeftOut: func(why error) { t.Error(why) },
	}
}

// texts returns records as text, without the fields that an export omits.
func texts(t *testing.T, list func(visit func(*tilthv1.Record) error) error) (all []string) {
	t.Helper()
	if err := list(func(r *tilthv1.Record) error {
		r.JobId, r.Workload = "", nil
		all = append(all, fmt.Sprint(r))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// host is a web server for a folder or other content. It records its requests.
type host struct {
	*httptest.Server
	dir string

	mu    sync.Mutex
	asked map[string]int
	lie   func(w http.ResponseWriter, r *http.Request) (done bool)
}

func newHost(t *testing.T, dir string, start func(http.Handler) *httptest.Server) *host {
	t.Helper()
	h := &host{dir: dir, asked: map[string]int{}}
	h.Server = start(h)
	t.Cleanup(h.Close)
	return h
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.asked[filepath.Base(r.URL.Path)]++
	lie := h.lie
	h.mu.Unlock()
	if lie == nil || !lie(w, r) {
		http.StripPrefix("/hub", http.FileServer(http.Dir(h.dir))).ServeHTTP(w, r)
	}
}

// requests returns the files requested since the last call.
func (h *host) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := slices.Sorted(maps.Keys(h.asked))
	clear(h.asked)
	return names
}

func (h *host) open(t *testing.T, o staticsite.ServerOptions) (*staticsite.Export, error) {
	t.Helper()
	if o.Cache == "" {
		o.Cache = t.TempDir()
	}
	if o.TLS == nil && h.Certificate() != nil {
		roots := x509.NewCertPool()
		roots.AddCert(h.Certificate())
		o.TLS = &tls.Config{RootCAs: roots}
	}
	s, err := staticsite.NewServer(h.URL+"/hub", o)
	if err != nil {
		return nil, err
	}
	return staticsite.Open(t.Context(), s)
}

func TestExportHasAllRecordsInAFolderAndOnAServer(t *testing.T) {
	many := uint64(storetest.QuickOr(200, 5000))
	s, dir := newStore(t, int64(many)), t.TempDir()
	all := many + 122
	if n := write(t, s, dir); n != all {
		t.Fatalf("%d records were exported", n)
	}
	h := newHost(t, dir, httptest.NewTLSServer)
	served, err := h.open(t, staticsite.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inFolder, err := staticsite.Open(t.Context(), staticsite.Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := texts(t, func(visit func(*tilthv1.Record) error) error { return s.List(t.Context(), "", "", visit) })
	for name, e := range map[string]*staticsite.Export{"served": served, "in a folder": inFolder} {
		got := texts(t, func(visit func(*tilthv1.Record) error) error { return e.List(t.Context(), "", "", visit) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d records, want %d", name, len(got), len(want))
		}
		to := storetest.Memory(t, bolt.Options{})
		for _, sent := range []uint64{all, 0} {
			r, err := storesync.Sync(t.Context(), e, storesync.Store{Measurements: to}, storesync.Options{})
			if err != nil || r.Sent != sent || r.There != all-sent || len(r.Refused()) > 0 {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
	}
}

func TestBestOfEachLevelIsFoundWithFewRequests(t *testing.T) {
	s, dir := newStore(t, 2), t.TempDir()
	write(t, s, dir)
	h, cache := newHost(t, dir, httptest.NewTLSServer), t.TempDir()
	conv, failed := records.Digest([]byte("conv")), records.Digest([]byte("failed"))
	for _, numerics := range []string{"strict", "default", "fast"} {
		e, err := h.open(t, staticsite.ServerOptions{Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Best(t.Context(), "cpu", numerics, failed, conv, records.Digest([]byte("none")))
		want, missing := s.BestAllowed("cpu", conv, numerics)
		if err := errors.Join(err, missing); err != nil || len(got) != 1 {
			t.Fatalf("%d records, %v", len(got), err)
		}
		if want.JobId = ""; fmt.Sprint(got[0]) != fmt.Sprint(want) {
			t.Errorf("%s: the best is %v, want %v", numerics, got[0], want)
		}
		// One chunk is fetched the first time, and none the second time.
		if asked := h.requests(); len(asked) != map[string]int{"strict": 2}[numerics]+map[string]int{"default": 1, "fast": 1}[numerics] {
			t.Errorf("%s: it was asked for %v", numerics, asked)
		}
	}
}

func TestOnlyTheLastChunkOfAGroupChanges(t *testing.T) {
	many := uint64(storetest.QuickOr(4100, 5000)) // a chunk has up to 4096 records
	s, dir := newStore(t, int64(many)), t.TempDir()
	write(t, s, dir)
	h, cache := newHost(t, dir, httptest.NewTLSServer), t.TempDir()
	to := storesync.Store{Measurements: storetest.Memory(t, bolt.Options{})}
	for i, chunks := range []int{10, 1, 0} {
		h.requests()
		e, err := h.open(t, staticsite.ServerOptions{Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		r, err := storesync.Sync(t.Context(), e, to, storesync.Options{})
		if asked := h.requests(); err != nil || len(asked) != chunks+1 || r.Sent != []uint64{many + 122, 1, 0}[i] {
			t.Errorf("sync %d: %+v, %v; it was asked for %d files", i, r, err, len(asked))
		}
		if i == 0 {
			storetest.Add(t, s, storetest.Record("cpu", "many", int64(many), 0.5))
			write(t, s, dir)
		}
	}
}

func TestUnusedChunksAreRemovedByTheNextExport(t *testing.T) {
	s, dir := newStore(t, 2), t.TempDir()
	count := func() int {
		entries, err := os.ReadDir(filepath.Join(dir, "chunks"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	write(t, s, dir)
	first := count()
	for second, want := range map[int64]int{2: 1, 3: 1} { // earlier exports are preserved
		storetest.Add(t, s, storetest.Record("cpu", "many", second, 0.5))
		if write(t, s, dir); count() != first+want {
			t.Errorf("%d chunks, there were %d", count(), first)
		}
	}
	failing := sourceOf(t, s)
	failing.List = func(visit func(*tilthv1.Record) error) error {
		return errors.Join(visit(storetest.Record("cpu", "conv", 1, 0.5)), errors.New("the line broke"))
	}
	if _, err := staticsite.Write(dir, failing); err == nil || count() != first+1 {
		t.Errorf("an export that failed left %d chunks, there were %d: %v", count(), first+1, err)
	}
}

// replace makes the server answer requests for chunks with other content.
func (h *host) replace(what string, answer func(w http.ResponseWriter, r *http.Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lie = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, what) {
			return false
		}
		answer(w, r)
		return true
	}
}

func TestErrorsOfAServerAreOneLine(t *testing.T) {
	dir := t.TempDir()
	write(t, newStore(t, 2), dir)
	other := newHost(t, dir, httptest.NewTLSServer)
	endless := func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		what   string
		answer http.HandlerFunc
		want   string
	}{
		"no export":     {"index", http.NotFound, "index.json: not found on the server (404): check the address"},
		"access denied": {"index", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "ask its operator"},
		"broken":        {"index", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "502 Bad Gateway: try again later"},
		"another page":  {"index", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "it is not the index of an export"},
		"another version": {"index", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"format":"tilth-records-index","version":9}`)
		}, "export them again with this version"},
		"an endless index":   {"index", endless, "more than 67108864 bytes"},
		"another chunk":      {"chunks", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }, "it does not match the index: try again"},
		"an endless chunk":   {"chunks", endless, "it does not match the index"},
		"a missing chunk":    {"chunks", http.NotFound, "not found on the server (404)"},
		"a silent server":    {"chunks", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "it takes too long to answer"},
		"a server that ends": {"chunks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the server ended the connection: try again"},
		"another server": {"index", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/hub/index.json", http.StatusFound)
		}, "it sends readers to another server, https://127.0.0.1"},
		"a circle": {"index", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "elsewhere more than 3 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, dir, httptest.NewTLSServer)
			h.Config.ErrorLog = nil
			h.replace(c.what, c.answer)
			o := staticsite.ServerOptions{}
			if name == "a silent server" {
				o.AnswerTime = 100 * time.Millisecond
			}
			e, err := h.open(t, o)
			if err == nil {
				_, err = e.Best(t.Context(), "cpu", "")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "records at "+h.URL+"/hub/: ") {
				t.Errorf("%v, want %s", err, c.want)
			}
			if other.requests() != nil {
				t.Error("another server was asked")
			}
		})
	}
}

func TestCertificateOfTheServerIsVerified(t *testing.T) {
	dir := t.TempDir()
	write(t, newStore(t, 2), dir)
	h, plain := newHost(t, dir, httptest.NewTLSServer), newHost(t, dir, httptest.NewServer)
	_, err := h.open(t, staticsite.ServerOptions{TLS: &tls.Config{}})
	if err == nil || !strings.Contains(err.Error(), "signed by an unknown authority: name its authorities with --tls-ca") {
		t.Errorf("an unknown authority: %v", err)
	}
	if _, err := plain.open(t, staticsite.ServerOptions{}); err != nil {
		t.Errorf("http on this machine: %v", err)
	}
	port := must(url.Parse(plain.URL)).Port()
	for address, want := range map[string]string{
		"http://records.example.com/hub":   "anybody on the way could change them: use https, or --allow-http",
		"ftp://127.0.0.1/hub":              "use https",
		"https:///hub":                     "https://HOST/PATH",
		"https://records.example.com/?a=b": "https://HOST/PATH",
		"https://127.0.0.1:" + port:        "the server does not speak TLS",
		"https://127.0.0.1:1":              "the server cannot be reached",
		"https://records.invalid":          "host name is not known",
	} {
		s, err := staticsite.NewServer(address, staticsite.ServerOptions{Cache: t.TempDir()})
		if err == nil {
			_, err = staticsite.Open(t.Context(), s)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
	if _, err := staticsite.NewServer("http://records.example.com/hub", staticsite.ServerOptions{Cache: t.TempDir(), AllowHTTP: true}); err != nil {
		t.Errorf("http that is allowed: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// hostile returns an export with one chunk that matches its digest.
func hostile(t *testing.T, content []byte, contentBytes int64) string {
	t.Helper()
	dir := t.TempDir()
	var chunk bytes.Buffer
	zip := gzip.NewWriter(&chunk)
	if _, err := zip.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(chunk.Bytes())
	c := staticsite.Chunk{Digest: hex.EncodeToString(sum[:]), SizeBytes: int64(chunk.Len()), ContentBytes: contentBytes, Records: 1}
	text, err := json.Marshal(staticsite.Index{Format: "tilth-records-index", Version: 1, Targets: []staticsite.Target{{Target: "cpu", Workloads: []staticsite.Workload{{
		Workload: records.Digest([]byte("conv")), Records: 1, Keys: records.Digest(nil), Best: &c, Chunks: []staticsite.Chunk{c},
	}}}}})
	err = errors.Join(err, os.Mkdir(filepath.Join(dir, "chunks"), 0o700), os.WriteFile(filepath.Join(dir, "index.json"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "chunks", c.Digest+".jsonl.gz"), chunk.Bytes(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRecordsOfAnExportAreValidated(t *testing.T) {
	lines := func(r *tilthv1.Record) []byte {
		var b bytes.Buffer
		w := must(records.NewWriter(&b))
		if err := errors.Join(w.Write(r), w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := lines(storetest.Record("cpu", "conv", 1, 0.5))
	invalid := storetest.Record("cpu", "conv", 1, 0.5)
	invalid.Measurement.LatencySeconds = -1
	for name, c := range map[string]struct {
		content []byte
		bytes   int64
		want    string
		refused string // by a sync; empty = success
	}{
		"good":                    {good, int64(len(good)), "", ""},
		"a decompression bomb":    {append(good, make([]byte, 4<<20)...), int64(len(good)), "more bytes than the index says", ""},
		"no export":               {[]byte("hello\n"), 6, "not the header", ""},
		"cut short":               {good[:len(good)-30], int64(len(good)), "damaged", ""},
		"a record that cannot be": {lines(invalid), 1 << 20, "measurement has a latency of -1 s", "measurement"},
		"another target":          {lines(storetest.Record("gpu", "conv", 1, 0.5)), 1 << 20, "of another target", "record"},
		"another workload":        {lines(storetest.Record("cpu", "pool", 1, 0.5)), 1 << 20, "of another target or workload", "record"},
	} {
		e, err := staticsite.Open(t.Context(), staticsite.Folder(hostile(t, c.content, c.bytes)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := storesync.Sync(t.Context(), e, storesync.Store{Measurements: storetest.Memory(t, bolt.Options{})}, storesync.Options{})
		if (err != nil) != (c.refused == "" && c.want != "") || c.refused != "" && (len(r.Refused()) != 1 || r.Refused()[0].Reason != c.refused) {
			t.Errorf("%s: a sync refused %v, %v", name, r.Refused(), err)
		}
		_, best := e.Best(t.Context(), "cpu", "")
		list := e.List(t.Context(), "", "", func(*tilthv1.Record) error { return nil })
		for _, err := range []error{best, list} {
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "'tilth records export --static'")) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}

func TestCachedChunkThatWasDamagedIsFetchedAgain(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, newStore(t, 2), dir)
	h := newHost(t, dir, httptest.NewTLSServer)
	for range 2 {
		e, err := h.open(t, staticsite.ServerOptions{Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		if best, err := e.Best(t.Context(), "cpu", ""); err != nil || len(best) != 4 {
			t.Errorf("%d records, %v", len(best), err)
		}
		if asked := h.requests(); len(asked) != 5 {
			t.Errorf("%d files were fetched", len(asked))
		}
		entries, err := os.ReadDir(cache)
		if err != nil || len(entries) != 4 {
			t.Fatalf("%d files in the cache, %v", len(entries), err)
		}
		for _, f := range entries {
			if err := os.WriteFile(filepath.Join(cache, f.Name()), []byte("damage"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, newStore(t, 2), dir)
	e, err := newHost(t, dir, httptest.NewTLSServer).open(t, staticsite.ServerOptions{Cache: cache, CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if best, err := e.Best(t.Context(), "", ""); err != nil || len(best) != 7 { // immediately
		t.Fatalf("%d records, %v", len(best), err)
	}
	if err := e.List(t.Context(), "", "", func(*tilthv1.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 1 {
		t.Errorf("%d files stay, %v", len(entries), err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	write(t, newStore(t, 2), dir)
	h := newHost(t, dir, httptest.NewTLSServer)
	e, err := h.open(t, staticsite.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("ctrl-C")
	h.replace("chunks", func(_ http.ResponseWriter, r *http.Request) {
		cancel(why)
		<-r.Context().Done()
	})
	if _, err := e.Best(ctx, "cpu", ""); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	if _, err := staticsite.Write(dir, staticsite.Source{
		List: func(visit func(*tilthv1.Record) error) error { return visit(storetest.Record("cpu", "conv", 1, 0.5)) },
		Best: func(records.Group, string) (*tilthv1.Record, error) {
			return storetest.Record("cpu", "conv", 1, 0.5), nil
		},
	}); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"tilth-records-index","version":1,"targets":[{"target":"a","workloads":[{"records":18446744073709551615}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		index, err := staticsite.Parse(text)
		if err != nil {
			if !errors.Is(err, records.ErrDamaged) && !errors.Is(err, records.ErrVersion) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q", err)
			}
			return
		}
		for _, target := range index.Targets {
			for _, w := range target.Workloads {
				sum := uint64(0)
				for _, c := range w.Chunks {
					if sum += c.Records; !records.ValidDigest(c.Digest) || c.SizeBytes > 64<<20 || c.ContentBytes > 256<<20 {
						t.Errorf("a chunk is %+v", c)
					}
				}
				if sum != w.Records {
					t.Errorf("%d records in chunks, %d in all", sum, w.Records)
				}
			}
		}
	})
}

// TestOneExportAtATimeIsWrittenToAFolder is a regression test: of two concurrent exports, the last one removed the
// chunks of the other's index.
func TestOneExportAtATimeIsWrittenToAFolder(t *testing.T) {
	dir := t.TempDir()
	first, second := newStore(t, 10), newStore(t, 0)
	from := sourceOf(t, first)
	list := from.List
	from.List = func(visit func(*tilthv1.Record) error) error {
		err := list(visit)
		_, refused := staticsite.Write(dir, sourceOf(t, second))
		if !errors.Is(refused, filesystem.ErrLocked) || !strings.Contains(refused.Error(), dir) || !strings.Contains(refused.Error(), "try again") {
			t.Errorf("a second export meanwhile: %v", refused)
		}
		return err
	}
	if _, err := staticsite.Write(dir, from); err != nil {
		t.Fatal(err)
	}
	listed := func(of records.Store) {
		t.Helper()
		export, err := staticsite.Open(t.Context(), staticsite.Folder(dir))
		if err != nil {
			t.Fatal(err)
		}
		got := texts(t, func(visit func(*tilthv1.Record) error) error { return export.List(t.Context(), "", "", visit) })
		want := texts(t, func(visit func(*tilthv1.Record) error) error { return of.List(t.Context(), "", "", visit) })
		if !slices.Equal(got, want) {
			t.Errorf("the export has %d records, want %d", len(got), len(want))
		}
	}
	listed(first)
	write(t, second, dir)
	listed(second)
}

// TestPipeInAnExportIsRefused checks that opening a FIFO does not block.
func TestPipeInAnExportIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, staticsite.IndexName), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := staticsite.Folder(dir).Index(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("the error is %v", err)
	}
}

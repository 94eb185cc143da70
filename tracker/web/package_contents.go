package web

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// contentsOf reads the manifest of a package and fetches little else. Errors are for display.
func (s *Site) contentsOf(ctx context.Context, digest string) (*manifest, error) {
	from := &remoteFile{ctx: ctx, client: s.artifacts, digest: digest}
	defer from.stop()
	archive := tar.NewReader(from)
	for range maxPassed {
		header, err := archive.Next()
		switch {
		case status.Code(err) == codes.NotFound:
			return nil, errors.New("it is no longer on the tracker")
		case err != nil && from.failed != nil && !errors.Is(from.failed, io.EOF):
			return nil, fmt.Errorf("it cannot be read: %s", status.Convert(from.failed).Message())
		case err != nil:
			return nil, errors.New("it is not a package")
		case header.Name != manifestName:
			continue
		case header.Size > maxManifestBytes:
			return nil, fmt.Errorf("its %s has %d bytes, more than the limit of %d", manifestName, header.Size, maxManifestBytes)
		}
		return readManifest(archive)
	}
	return nil, fmt.Errorf("it has more than %d members before its %s", maxPassed, manifestName)
}

// remoteFile reads ranges of an artifact.
type remoteFile struct {
	ctx    context.Context
	client tilthv1.ArtifactServiceClient
	digest string
	offset int64
	chunk  []byte
	stream interface {
		Recv() (*tilthv1.DownloadArtifactResponse, error)
	}
	end    context.CancelFunc // cancels the stream
	failed error
}

// Read implements io.Reader.
func (f *remoteFile) Read(b []byte) (int, error) {
	for len(f.chunk) == 0 && f.failed == nil {
		f.chunk, f.failed = f.next()
	}
	if len(f.chunk) == 0 {
		return 0, f.failed
	}
	n := copy(b, f.chunk)
	f.chunk, f.offset = f.chunk[n:], f.offset+int64(n)
	return n, nil
}

func (f *remoteFile) next() ([]byte, error) {
	if f.stream == nil {
		ctx, end := context.WithCancel(f.ctx)
		stream, err := f.client.DownloadArtifact(ctx, &tilthv1.DownloadArtifactRequest{Digest: f.digest, Offset: uint64(f.offset)})
		if err != nil {
			end()
			return nil, err
		}
		f.stream, f.end = stream, end
	}
	part, err := f.stream.Recv()
	return part.GetData(), err
}

// stop cancels the stream, if any.
func (f *remoteFile) stop() {
	if f.stream != nil {
		f.end()
		f.stream = nil
	}
}

// Seek implements io.Seeker, except relative to the end, which is unknown.
func (f *remoteFile) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		offset += f.offset
	}
	if whence == io.SeekEnd || offset < 0 {
		return 0, errors.ErrUnsupported
	}
	if ahead := offset - f.offset; ahead >= 0 && ahead <= int64(len(f.chunk)) {
		f.chunk = f.chunk[ahead:]
	} else {
		f.stop()
		f.chunk = nil
	}
	f.offset = offset
	return offset, nil
}

// comparedContents compares the contents of two packages.
type comparedContents struct {
	Names   [2]string
	Facts   []comparedFact
	Kernels []comparedKernel
	// Failures explain what is not shown.
	Failures []string
}

// comparedFact is a property of both packages.
type comparedFact struct {
	Name string
	Of   [2]string
}

// comparedKernel is a kernel of one or both packages, matched by workload.
type comparedKernel struct {
	Name string
	Of   [2]*packageTask
	// Same is set if both have the same schedule for it.
	Same bool
}

// compareContents compares the first two packages of some jobs; nil with fewer than two. It limits concurrency, since
// parsing takes a multiple of a manifest's size.
func (s *Site) compareContents(r *http.Request, packages []packageRow) *comparedContents {
	if len(packages) < 2 {
		return nil
	}
	c := &comparedContents{}
	if !s.Auth.May(r, tilthv1.ArtifactService_DownloadArtifact_FullMethodName, "") {
		c.Failures = []string{"What is in packages is for clients and admins."}
		return c
	}
	select {
	case s.comparisons <- struct{}{}:
		defer func() { <-s.comparisons }()
	case <-r.Context().Done():
		c.Failures = []string{"What is in packages was not read: the request ended."}
		return c
	}
	var both [2]*manifest
	for side := range both {
		p := packages[side]
		c.Names[side] = p.Name
		m, err := s.contentsOf(r.Context(), p.Digest)
		if err != nil {
			c.Failures = append(c.Failures, fmt.Sprintf("What is in %s is not shown: %v.", p.Name, err))
			continue
		}
		both[side] = m
	}
	if len(c.Failures) == 0 {
		c.Facts, c.Kernels = factsOf(both), kernelsOf(both)
	}
	return c
}

// factsOf compares properties of two packages.
func factsOf(both [2]*manifest) (facts []comparedFact) {
	add := func(name string, of func(m *manifest) string) {
		if f := (comparedFact{Name: name, Of: [2]string{of(both[0]), of(both[1])}}); f.Of != [2]string{} {
			facts = append(facts, f)
		}
	}
	add("model", func(m *manifest) string { return m.Model })
	add("processor", func(m *manifest) string { return word(m.Target.CPU) })
	add("toolchain", func(m *manifest) string { return word(m.Target.Toolchain) })
	add("inputs", func(m *manifest) string { return strconv.Itoa(len(m.Inputs)) })
	add("outputs", func(m *manifest) string { return strconv.Itoa(len(m.Outputs)) })
	add("kernels", func(m *manifest) string { return strconv.Itoa(len(m.Tasks)) })
	add("calls of kernels", func(m *manifest) string { return strconv.Itoa(len(m.Calls)) })
	add("memory for values", func(m *manifest) string { return humanize.Bytes(m.ArenaBytes) })
	add("weights", func(m *manifest) string { return humanize.Bytes(m.WeightsBytes) })
	add("weights in integers", func(m *manifest) string {
		if m.Weights == nil {
			return ""
		}
		return fmt.Sprintf("%d of %d as %s", m.Weights.Quantised, m.Weights.All, m.Weights.Type)
	})
	listed := map[string]bool{}
	for _, m := range both { // members of the first package first
		for _, member := range m.Members {
			if !listed[member.Name] {
				listed[member.Name] = true
				add(member.Name, func(m *manifest) string {
					for _, other := range m.Members { // of members with one name, the first counts
						if other.Name == member.Name {
							return humanize.Bytes(other.SizeBytes)
						}
					}
					return ""
				})
			}
		}
	}
	return facts
}

// word returns a JSON string, or "" for other values.
func word(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// kernelsOf matches the kernels of two packages by workload, those of the first package first.
func kernelsOf(both [2]*manifest) (rows []comparedKernel) {
	at := map[string]int{}
	for side, m := range both {
		for i := range m.Tasks {
			task := &m.Tasks[i]
			k, is := at[task.Workload]
			if !is || rows[k].Of[side] != nil {
				k = len(rows)
				at[task.Workload] = k
				rows = append(rows, comparedKernel{Name: task.Name})
			}
			task.Trace = cut(task.Trace, maxText)
			rows[k].Of[side] = task
		}
	}
	for k := range rows {
		a, b := rows[k].Of[0], rows[k].Of[1]
		rows[k].Same = a != nil && b != nil && a.Trace == b.Trace
	}
	return rows
}

// packageRow is a package that a job ran.
type packageRow struct {
	Name, Digest string
	// Link downloads it; empty without permission.
	Link    string
	Samples int
	Seconds float64 // median per execution; 0 if not timed
	// Against compares it with the first package, if several were timed in turns.
	Against string
}

// packagesIn returns the packages that a job runs, or the one that it has made.
func packagesIn(j *tilthv1.Job) []*tilthv1.RunPackage {
	if made := j.GetResult().GetOutputs(); made != nil && j.GetSpec().GetRun().GetPackageOf() != "" {
		return []*tilthv1.RunPackage{{Name: j.GetSpec().GetName(), Artifact: made}}
	}
	return j.GetSpec().GetRun().GetPackages()
}

// packagesOf returns the packages that a job ran or made, with links for callers that may download them.
func (s *Site) packagesOf(r *http.Request, j *tilthv1.Job) (out []packageRow) {
	results := j.GetResult().GetPackages()
	for i, p := range packagesIn(j) {
		row := packageRow{Name: p.GetName(), Digest: p.GetArtifact().GetDigest()}
		if s.Auth.May(r, tilthv1.ArtifactService_DownloadArtifact_FullMethodName, "") {
			row.Link = fmt.Sprintf("/jobs/%s/packages/%d", j.GetId(), i)
		}
		if i < len(results) {
			samples := results[i].GetSamplesSeconds()
			row.Samples, row.Seconds = len(samples), stats.Of(samples).Median
			if i > 0 && len(samples) > 0 {
				ratio := stats.PairedRatio(results[0].GetSamplesSeconds(), samples)
				row.Against = fmt.Sprintf("%.2fx (%.2f–%.2f): %s", ratio.Ratio, ratio.Low, ratio.High, ratio.Verdict())
			}
		}
		out = append(out, row)
	}
	return out
}

// Bounds on what a page reads from packages, which clients upload.
const (
	// maxManifestBytes bounds a manifest. Models with a thousand kernels have a few MiB.
	maxManifestBytes = 4 << 20
	// maxPassed bounds the members before the manifest.
	maxPassed = 64
	// maxKernels and maxMembers bound the lists in a manifest; each item is a row of the page.
	maxKernels, maxMembers = 16384, 1024
	// maxComparisons bounds concurrent requests that read packages.
	maxComparisons = 2
)

// manifestName is the member of a package that describes the others.
const manifestName = "manifest.json"

// manifest is the part of manifest.json (docs/formats.md) that a page shows.
type manifest struct {
	Model  string `json:"model"`
	Target struct {
		CPU       json.RawMessage `json:"cpu"`
		Toolchain json.RawMessage `json:"toolchain"`
	} `json:"target"`
	Inputs       []ignored         `json:"inputs"`
	Outputs      []ignored         `json:"outputs"`
	Tasks        list[packageTask] `json:"tasks"`
	Calls        []ignored         `json:"calls"`
	ArenaBytes   int64             `json:"arena_bytes"`
	WeightsBytes int64             `json:"weights_bytes"`
	Weights      *struct {
		Type      string `json:"type"`
		Quantised int    `json:"quantised"`
		All       int    `json:"all"`
	} `json:"weights"`
	Members list[packageMember] `json:"members"`
}

// packageTask is a kernel of a package.
type packageTask struct {
	Name           string  `json:"name"`
	Workload       string  `json:"workload"`
	Trace          string  `json:"trace"`
	Origin         string  `json:"origin"`
	LatencySeconds float64 `json:"latency_s"`
	// FormerLatencySeconds is the field's name in older versions.
	FormerLatencySeconds float64 `json:"latency_seconds"`
}

// packageMember is a file of a package.
type packageMember struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
}

// readManifest reads a manifest of at most maxManifestBytes. Errors are for display.
func readManifest(r io.Reader) (*manifest, error) {
	var m manifest
	err := json.NewDecoder(r).Decode(&m)
	if tooMany := (*tooManyError)(nil); errors.As(err, &tooMany) {
		return nil, fmt.Errorf("its %s has %w", manifestName, tooMany)
	}
	if err != nil {
		return nil, fmt.Errorf("its %s is not valid", manifestName)
	}
	for k := range m.Tasks {
		m.Tasks[k].LatencySeconds = cmp.Or(m.Tasks[k].LatencySeconds, m.Tasks[k].FormerLatencySeconds)
	}
	return &m, nil
}

// listed is an item of a bounded list.
type listed interface {
	limit() (what string, most int)
}

func (packageTask) limit() (string, int)   { return "tasks", maxKernels }
func (packageMember) limit() (string, int) { return "members", maxMembers }

// list is a bounded list.
type list[T listed] []T

// UnmarshalJSON implements json.Unmarshaler. null is an empty list.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(data))
	switch begin, err := d.Token(); {
	case err != nil:
		return err
	case begin == nil:
		return nil
	case begin != json.Delim('['):
		return errors.New("is not a list")
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		if what, most := item.limit(); len(*l) == most {
			return &tooManyError{what, most}
		}
		*l = append(*l, item)
	}
	return nil
}

// tooManyError reports a list with more items than a page shows.
type tooManyError struct {
	what string
	max  int
}

// Error implements error.
func (e *tooManyError) Error() string {
	return fmt.Sprintf("more than %d %s, the most that are shown", e.max, e.what)
}

// ignored is a discarded value: a list of them has a length, but takes no memory.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

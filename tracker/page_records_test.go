package tracker_test

import (
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

const conv, dense = "conv2d+relu 1x56x56x64 k3x3 -> 64", "dense 1x512 -> 1000"

// computed measures one candidate of a convolution and of a product for each list of algorithms, and returns the job.
func (f *trackerFarm) computed(algorithms ...[]string) string {
	f.Helper()
	s := spec(conv, dense)
	id := f.submit("r", s).GetId()
	tuner, builder, runner := f.tuner(), f.builder(), f.join("board", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	lease := f.mustLease(tuner).GetLease()
	for task := range uint32(2) {
		proposed := candidates("a", "b", "c", "d")[:len(algorithms)]
		for i, names := range algorithms {
			if proposed[i].Algorithms = names; names != nil {
				proposed[i].Numerics = "default"
			}
		}
		must[*tilthv1.ProposeBatchResponse](f)(f.search.ProposeBatch(f.Context(), &tilthv1.ProposeBatchRequest{
			Lease: lease, Proposal: uint64(task), TaskIndex: task, Candidates: proposed,
		}))
		f.reportBuild(f.buildReport(f.mustLease(builder)))
		work := f.mustLease(runner)
		for i, c := range work.GetMeasure().GetCandidates() {
			f.report(work.GetLease(), ok(c, 1e-3*float64(1+i)))
		}
	}
	return id
}

// TestRecordsAreFoundByOperatorAndShape checks filters by words of the name and by the start of the digest.
func TestRecordsAreFoundByOperatorAndShape(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.computed(nil)
	f.restart()
	pages := f.tracker.HTTPHandler()
	const convRow, denseRow = `<td class="name">conv2d&#43;relu 1x56x56x64 k3x3 -&gt; 64<td>`, `<td class="name">dense 1x512 -&gt; 1000<td>`
	digest := records.Digest([]byte("workload " + conv))
	for query, found := range map[string]bool{
		"": true, "?name=conv2d+56x56": true, "?name=56X56x64": true, "?workload=" + digest: true, "?workload=" + digest[:7]: true,
		"?name=conv2d&target=cpu-1": true, "?name=conv2d+dense": false, "?name=conv2d&target=cpu-2": false, "?workload=" + digest[1:]: false,
	} {
		wants, lacks := []string{convRow}, []string{denseRow}
		switch {
		case query == "":
			wants, lacks = []string{convRow, denseRow}, nil
		case !found:
			wants, lacks = []string{"No records."}, []string{convRow, denseRow}
		}
		wantPage(t, pages, "/records"+query, wants, lacks)
	}
}

// TestPagesNameAlgorithms checks jobs, tasks and records, for tuners with and without names of algorithms.
func TestPagesNameAlgorithms(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.computed([]string{"F(4x4,3x3)/2"}, []string{"Strassen", "TF32"}, nil)
	pages := f.tracker.HTTPHandler()
	wantPage(t, pages, "/jobs/"+id, []string{"<td>Winograd 4x4<td>"}, []string{"direct"})
	wantPage(t, pages, "/jobs/"+id+"/tasks/0", []string{
		`algorithm</span> Winograd 4x4`, "; Winograd 4x4; schedule", "; Strassen, TF32; schedule", "; direct; schedule",
	}, []string{"strict"})
	wantPage(t, pages, "/records", []string{"<td>Winograd 4x4<td"}, nil)
}

package web

import (
	"cmp"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// taskRow is a task in a job's table.
type taskRow struct {
	Index  int
	Name   string
	Weight float64
	Trials int
	Flop   float64
	// Share is its fraction of the model's latency.
	Share                       float64
	UntunedSeconds, BestSeconds float64
	Algorithm                   string
	// OfLimit is the achieved fraction of the machine's limit; LimitSeconds is the latency at that limit, 0 if
	// unknown.
	OfLimit      string
	LimitSeconds float64
	// ByBytes is set if memory traffic, not arithmetic, determines the limit.
	ByBytes bool
	Spark   template.HTML
	Failed  int
}

// failure is an error class with its count and first message.
type failure struct {
	Class, Message, Task string
	Times                int
}

// jobPage shows one job.
type jobPage struct {
	*tilthv1.Job
	jobRow
	UntunedSeconds, Latency float64
	// Limit is the model's latency at the machine's limit in seconds; 0 if unknown.
	Limit float64
	Tasks []taskRow
	// Part is the range of tasks that is shown.
	Part     part
	Failures []failure
	// MoreFailures counts failures that are not shown.
	MoreFailures int
	// MoreDead counts dead letters that are not shown.
	MoreDead         int
	Told             []eventLine
	ByTime, ByTrials template.HTML
	Shares           progress.Shares
	Actions          []string
	Behind           bool
	Outage           *tilthv1.Outage
	// Packages are the packages that the job runs or makes, or those of Made, the job that makes its package.
	Packages []packageRow
	Made     *tilthv1.Job
}

func (s *Site) job(w http.ResponseWriter, r *http.Request) error {
	got, err := s.jobs.GetJob(r.Context(), &tilthv1.GetJobRequest{JobId: r.PathValue("id")})
	if err != nil {
		return err
	}
	j := got.GetJob()
	p := jobPage{Job: j, jobRow: rows([]*tilthv1.Job{j})[0], Outage: got.GetOutage(), Actions: s.jobActions(r, j), Packages: s.packagesOf(r, j)}
	live := j.GetId()
	if id := j.GetPackageJobId(); id != "" {
		if p.Made, err = s.getJob(r.Context(), id); err != nil {
			return err
		}
		p.Packages, live = s.packagesOf(r, p.Made), id
	}
	if err := s.view(r.Context(), j, p.fill); err != nil {
		return err
	}
	if p.Part, err = partOf(r, len(p.Tasks)); err != nil {
		return err
	}
	p.Tasks = of(p.Part, p.Tasks)
	p.Failures, p.MoreFailures = mostFrequent(p.Failures)
	if more := len(j.GetDeadLetters()) - maxFailures; more > 0 {
		j.DeadLetters, p.MoreDead = j.GetDeadLetters()[more:], more
	}
	return s.render(w, r, http.StatusOK, "job", layout{
		Title: cmp.Or(j.GetSpec().GetName(), j.GetId()), Section: "jobs", Live: LivePath + "?job=" + live, Page: p,
	})
}

// maxFailures bounds the failures and dead letters on a job's page, maxFailureText the bytes of each message. A
// task's page shows messages in full.
const (
	maxFailures    = 100
	maxFailureText = 1 << 10
)

// mostFrequent returns the failures to show, the most frequent if there are too many, and the number omitted.
func mostFrequent(all []failure) (shown []failure, more int) {
	if more = len(all) - maxFailures; more > 0 {
		slices.SortStableFunc(all, func(a, b failure) int { return cmp.Compare(b.Times, a.Times) })
		all = all[:maxFailures]
	}
	for i := range all {
		all[i].Message = cut(all[i].Message, maxFailureText)
	}
	return all, max(more, 0)
}

// fill fills in the page from the summary of a job's events.
func (p *jobPage) fill(f *follow) {
	t := f.tally
	p.UntunedSeconds, p.Latency, p.Behind = t.UntunedSeconds(), t.BestSeconds(), f.behind
	p.Limit = t.LimitSeconds()
	p.Shares = t.Spent().Shares(t.Elapsed())
	p.Told = slices.Clone(f.told)
	slices.Reverse(p.Told)
	p.ByTime, p.ByTrials = Curves(t.Curve, p.Limit)
	bests := f.bests()
	for i := range t.Tasks {
		p.Tasks = append(p.Tasks, rowOf(f, i, bests[i]))
		p.Failures = append(p.Failures, failuresOf(&t.Tasks[i])...)
	}
}

func failuresOf(t *progress.Task) (out []failure) {
	for _, class := range slices.Sorted(maps.Keys(t.Errors)) {
		out = append(out, failure{class, t.Messages[class], t.Name, t.Errors[class]})
	}
	return out
}

// bests returns the progress of each task's best in seconds, in one pass over all points.
func (f *follow) bests() [][]float64 {
	out := make([][]float64, len(f.tally.Tasks))
	for _, p := range f.points {
		if p.best > 0 {
			out[p.task] = append(out[p.task], p.best)
		}
	}
	return out
}

// rowOf returns a task's row. bests is the progress of its best.
func rowOf(f *follow, i int, bests []float64) taskRow {
	task, latency := &f.tally.Tasks[i], f.tally.BestSeconds()
	row := taskRow{
		Index: i, Name: task.Name, Weight: task.Weight, Trials: task.Trials, Flop: task.Flop,
		UntunedSeconds: task.UntunedSeconds, BestSeconds: task.BestSeconds, OfLimit: task.OfLimit(),
	}
	row.LimitSeconds, row.ByBytes = task.Limit()
	if task.Best != nil {
		row.Algorithm = algorithm(task.Best.GetCandidate())
	}
	if latency > 0 {
		row.Share = task.BestSeconds * task.Weight / latency
	}
	for _, n := range task.Errors {
		row.Failed += n
	}
	row.Spark = sparkline(bests)
	return row
}

// taskPage shows one task of a job.
type taskPage struct {
	*tilthv1.Job
	taskRow
	Chart     template.HTML
	Predicted predictions
	Best      *tilthv1.Measurement
	// Interval is the confidence interval of the best's median.
	Interval, Trace, Workload, Digest string
	Failures                          []failure
	// Knobs are the knobs of the best; Neighbours are trials that differ in one knob.
	Knobs      []knob
	Neighbours []neighbour
	// Previous and Next are the adjacent tasks, or -1.
	Previous, Next int
	Behind         bool
	// Sampled is set if the page has only a sample of the trials.
	Sampled bool
}

// maxText bounds a displayed workload or schedule, in bytes.
const maxText = 64 << 10

func (s *Site) task(w http.ResponseWriter, r *http.Request) error {
	j, err := s.getJob(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(r.PathValue("task"))
	if err != nil || i < 0 || i >= len(j.GetSpec().GetTasks()) {
		return status.Errorf(codes.NotFound, "job %s has no task %q", j.GetId(), r.PathValue("task"))
	}
	spec := j.GetSpec().GetTasks()[i]
	p := taskPage{Job: j, Previous: i - 1, Next: -1, Workload: cut(string(spec.GetWorkload()), maxText), Digest: spec.GetWorkloadDigest()}
	if i+1 < len(j.GetSpec().GetTasks()) {
		p.Next = i + 1
	}
	if i < len(j.GetProgress()) {
		p.Trace = cut(string(j.GetProgress()[i].GetBestTrace()), maxText)
	}
	err = s.view(r.Context(), j, func(f *follow) {
		t := &f.tally.Tasks[i]
		p.taskRow, p.Best, p.Interval = rowOf(f, i, f.bests()[i]), t.Best, t.Uncertainty()
		p.Behind, p.Sampled = f.behind, f.every > 1
		best := f.knobsOf(i, humanize.Digest(t.Best.GetCandidate().GetDigest()))
		p.Knobs, p.Neighbours = f.forms.show(best), f.neighbours(i, best)
		own := slices.DeleteFunc(slices.Clone(f.points), func(p point) bool { return int(p.task) != i })
		p.Chart, p.Predicted, p.Failures = scatter(own, p.LimitSeconds), predictionsOf(own), failuresOf(t)
	})
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "task", layout{Title: p.Name, Section: "jobs", Live: LivePath + "?job=" + j.GetId(), Page: p})
}

// cut truncates text to at most limit bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}

// comparePage shows two jobs side by side.
type comparePage struct {
	A, B  string
	Jobs  []jobPage
	Tasks []comparedTask
	// Part is the range of tasks that is shown.
	Part part
	// Contents compares two packages; nil if the jobs run none.
	Contents *comparedContents
}

// comparedTask is a workload with its best latency in each job in seconds, or 0.
type comparedTask struct {
	Name string
	A, B float64
}

// compare shows two jobs side by side, matching workloads by digest.
func (s *Site) compare(w http.ResponseWriter, r *http.Request) error {
	p := comparePage{A: r.URL.Query().Get("a"), B: r.URL.Query().Get("b")}
	at := map[string]int{}
	for side, id := range []string{p.A, p.B} {
		if p.A == "" || p.B == "" {
			break
		}
		j, err := s.getJob(r.Context(), id)
		if err != nil {
			return err
		}
		one := jobPage{Job: j, jobRow: rows([]*tilthv1.Job{j})[0], Packages: s.packagesOf(r, j)}
		if err := s.view(r.Context(), j, one.fill); err != nil {
			return err
		}
		p.Jobs = append(p.Jobs, one)
		for i, t := range j.GetSpec().GetTasks() {
			k, is := at[t.GetWorkloadDigest()]
			if !is {
				k = len(p.Tasks)
				at[t.GetWorkloadDigest()] = k
				p.Tasks = append(p.Tasks, comparedTask{Name: one.Tasks[i].Name})
			}
			if side == 0 {
				p.Tasks[k].A = one.Tasks[i].BestSeconds
			} else {
				p.Tasks[k].B = one.Tasks[i].BestSeconds
			}
		}
	}
	var err error
	if p.Part, err = partOf(r, len(p.Tasks)); err != nil {
		return err
	}
	p.Tasks = of(p.Part, p.Tasks)
	p.Contents = s.compareContents(r, distinct(p.Jobs))
	return s.render(w, r, http.StatusOK, "compare", layout{Title: "Compare", Section: "compare", Page: p})
}

// distinct returns the packages of jobs without duplicates.
func distinct(jobs []jobPage) (packages []packageRow) {
	for _, j := range jobs {
		for _, p := range j.Packages {
			if !slices.ContainsFunc(packages, func(other packageRow) bool { return other.Digest == p.Digest }) {
				packages = append(packages, p)
			}
		}
	}
	return packages
}

// recordsPage shows the best records of workloads.
type recordsPage struct {
	// Name has words of a workload's name, such as an operator or a shape; Workload begins its digest.
	Name, Workload, Target, Next string
	Records                      []*tilthv1.Record
}

// Bounds of a page of records: about how many it shows, and how many it searches for matches.
const (
	recordsOfPage = 100
	maxRecords    = 5000
)

func (s *Site) listRecords(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	p := recordsPage{Name: in.Get("name"), Workload: in.Get("workload"), Target: in.Get("target")}
	found, next, err := search(recordsOfPage, maxRecords, in.Get("page"), func(_ int, token string) ([]*tilthv1.Record, string, error) {
		best, err := s.records.BestRecords(r.Context(), &tilthv1.BestRecordsRequest{Target: p.Target, PageSize: recordsOfPage, PageToken: token})
		return best.GetRecords(), best.GetNextPageToken(), err
	}, func(r *tilthv1.Record) bool {
		return contains(r.GetName(), p.Name) && strings.HasPrefix(r.GetWorkloadDigest(), p.Workload)
	})
	if err != nil {
		return err
	}
	if p.Records = found; next != "" {
		p.Next = "?" + query("name", p.Name, "workload", p.Workload, "target", p.Target, "page", next)
	}
	return s.render(w, r, http.StatusOK, "records", layout{Title: "Records", Section: "records", Page: p})
}

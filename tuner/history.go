package tuner

import (
	"context"
	"errors"
	"io"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// history is what was recorded before a job was made, by other jobs, on its target and on siblings of it; nil when the
// job is to learn nothing from that, or its search cannot. It is the same for every tuner that holds the job.
func (h *Handler) history(ctx context.Context, j *tilthv1.Job) (*knowledge.History, error) {
	if j.GetSpec().GetTuner() != Best {
		return nil, nil
	}
	own, err := target.Decode(j.GetSpec().GetTarget().GetDescriptor_())
	if err != nil {
		return nil, nil // the job cannot begin, and says so itself
	}
	if j.GetSpec().GetNoTransfer() { // which leaves a model that was given
		return knowledge.NewHistory(own, nil).Use(knowledge.Models{Given: h.Models.Given}), nil
	}
	var collector *knowledge.Collector
	err = agent.Report(ctx, h.Logger, "read the records", func(ctx context.Context) error {
		siblings, err := h.siblings(ctx, j)
		if err != nil {
			return err
		}
		collector = knowledge.NewCollector(own, siblings...)
		return h.records(ctx, j.GetId(), before(j), collector.Add)
	})
	if err != nil {
		return nil, err
	}
	return collector.History().Use(h.Models), nil
}

// siblings are the targets of the jobs that were made before j.
func (h *Handler) siblings(ctx context.Context, j *tilthv1.Job) ([]*target.Target, error) {
	response, err := tilthv1.NewJobServiceClient(h.Conn).ListJobs(ctx, &tilthv1.ListJobsRequest{})
	if err != nil {
		return nil, err
	}
	var list []*target.Target
	for _, other := range response.GetJobs() {
		if !other.GetCreatedAt().AsTime().Before(j.GetCreatedAt().AsTime()) {
			continue
		}
		if t, err := target.Decode(other.GetSpec().GetTarget().GetDescriptor_()); err == nil {
			list = append(list, t)
		}
	}
	return list, nil
}

// before tells which records were there when a job was made.
func before(j *tilthv1.Job) func(*tilthv1.Record) bool {
	made := j.GetCreatedAt().AsTime()
	return func(r *tilthv1.Record) bool {
		return r.GetJobId() != j.GetId() && r.GetMeasurement().GetAt().AsTime().Before(made)
	}
}

// records calls visit with every record that is wanted and that a job may learn from. The first of each workload
// carries its text, wanted or not.
func (h *Handler) records(ctx context.Context, jobID string, wanted func(*tilthv1.Record) bool, visit func(*tilthv1.Record)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := tilthv1.NewRecordServiceClient(h.Conn).ListRecords(ctx, &tilthv1.ListRecordsRequest{JobId: jobID})
	if err != nil {
		return err
	}
	var text []byte
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r := response.GetRecord()
		if len(r.GetWorkload()) > 0 {
			text = r.GetWorkload()
		}
		if wanted(r) {
			r.Workload = text
			visit(r)
		}
	}
}

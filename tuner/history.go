package tuner

import (
	"context"
	"errors"
	"io"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// history reads the records that existed before the job, of its target and of sibling targets. It returns nil
// if the job or its search does not learn from records. It is the same for every tuner that holds the job.
func (h *Handler) history(ctx context.Context, j *tilthv1.Job) (*transfer.History, error) {
	if j.GetSpec().GetTuner() != Best {
		return nil, nil
	}
	own, err := target.Decode(j.GetSpec().GetTarget().GetDescriptor_())
	if err != nil {
		return nil, nil // the job fails with its own error
	}
	if j.GetSpec().GetNoTransfer() { // a given model still counts
		return transfer.NewHistory(own, nil).Use(transfer.Models{Given: h.Models.Given}), nil
	}
	var collector *transfer.Collector
	err = agent.Report(ctx, h.Logger, "read the records", func(ctx context.Context) error {
		siblings, err := h.siblings(ctx, j)
		if err != nil {
			return err
		}
		collector = transfer.NewCollector(own, siblings...)
		return h.records(ctx, j.GetId(), before(j), collector.Add)
	})
	if err != nil {
		return nil, err
	}
	return collector.History().Use(h.Models), nil
}

// siblings returns the targets of jobs submitted before j.
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

// before returns a filter of the records that existed when a job was submitted.
func before(j *tilthv1.Job) func(*tilthv1.Record) bool {
	made := j.GetCreatedAt().AsTime()
	return func(r *tilthv1.Record) bool {
		return r.GetJobId() != j.GetId() && r.GetMeasurement().GetAt().AsTime().Before(made)
	}
}

// records calls visit for every wanted record that the job may learn from. The first record of each workload
// is visited even if it is unwanted, because it carries the workload's text.
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

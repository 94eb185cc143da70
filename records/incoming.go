package records

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Incoming validates and normalizes records from outside.
type Incoming struct {
	bounds *wire.Checker // applies the bounds of the wire to records from files
}

// NewIncoming returns an Incoming for any number of records.
func NewIncoming() (*Incoming, error) {
	checker, err := wire.NewChecker()
	if err != nil {
		return nil, err
	}
	return &Incoming{bounds: checker}, nil
}

// Admit returns an error that wraps ErrInvalid for a bad record. It cuts a valid record to the stored size and clears
// its job, which belongs to the tracker that made it.
func (i *Incoming) Admit(r *tilthv1.Record) error {
	if err := Validate(r); err != nil {
		return err
	}
	if at := r.GetMeasurement().GetAt().AsTime(); time.Until(at) > maxClockSkew {
		return invalid("measurement.at", "is %s, which is in the future", at.Format(time.RFC3339))
	}
	r.JobId = ""
	CutMeasurement(r.GetMeasurement())
	if err := i.bounds.Message(r); err != nil {
		return &InvalidError{Field: fieldOf(err), Text: status.Convert(err).Message()}
	}
	return nil
}

// fieldOf returns the field named by a bounds violation.
func fieldOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if request, is := detail.(*errdetails.BadRequest); is && len(request.GetFieldViolations()) > 0 {
			return request.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

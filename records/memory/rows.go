package memory

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/records"
)

// rowsPerLook bounds the rows read per lock acquisition.
const rowsPerLook = 512

// decode decodes a row.
func decode(row []byte, into proto.Message) error {
	if err := proto.Unmarshal(row, into); err != nil {
		return fmt.Errorf("decode a row of the store: %w", err)
	}
	return nil
}

// page returns some keys and rows from a key on, and the first key of the next page; more is false on the last page.
func page(s *Store, rows *sorted[string, []byte], from string) (keys []string, found [][]byte, next string, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, row := range rows.from(from) {
		if len(keys) == rowsPerLook {
			return keys, found, key, true
		}
		keys, found = append(keys, key), append(found, row)
	}
	return keys, found, "", false
}

// eachRow visits rows sorted by key, without holding the lock.
func eachRow(s *Store, rows *sorted[string, []byte], visit func(key string, row []byte) error) error {
	for from, more := "", true; more; {
		var keys []string
		var found [][]byte
		keys, found, from, more = page(s, rows, from)
		for i, key := range keys {
			if err := visit(key, found[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitAll decodes and visits the rows of a kind, sorted by key.
func visitAll[M any, P interface {
	*M
	proto.Message
}](s *Store, kind records.RowKind, visit func(key string, message P)) error {
	return eachRow(s, s.rows[kind], func(key string, row []byte) error {
		message := P(new(M))
		err := decode(row, message)
		visit(key, message)
		return err
	})
}

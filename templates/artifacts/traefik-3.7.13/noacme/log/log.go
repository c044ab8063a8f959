// Package log takes the log of a client that is not there.
package log

import "log/slog"

// SetDefault has no effect.
func SetDefault(*slog.Logger) {}

package main

import (
	"context"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
)

// newUTF8Factory makes the processor `utf8`, which has no settings. A container runtime cuts a long line between any two
// bytes, so only a line that is joined again can be judged; and protobuf takes no text that is not UTF-8.
func newUTF8Factory() processor.Factory {
	kind := component.MustNewType("utf8")
	return processor.NewFactory(kind, func() component.Config { return &struct{}{} }, processor.WithLogs(
		func(ctx context.Context, set processor.Settings, config component.Config, next consumer.Logs) (processor.Logs, error) {
			return processorhelper.NewLogs(ctx, set, config, next, validate,
				processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
		}, component.StabilityLevelStable))
}

// validate puts U+FFFD in the place of bytes that are no UTF-8.
func validate(_ context.Context, logs plog.Logs) (plog.Logs, error) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				validateText(record.Body())
				for _, value := range record.Attributes().All() {
					validateText(value)
				}
			}
		}
	}
	return logs, nil
}

func validateText(value pcommon.Value) {
	if value.Type() != pcommon.ValueTypeStr {
		return
	}
	if text := value.Str(); !utf8.ValidString(text) {
		value.SetStr(strings.ToValidUTF8(text, "\uFFFD"))
	}
}

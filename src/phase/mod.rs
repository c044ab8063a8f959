//! Steps, graph, plan and engine.

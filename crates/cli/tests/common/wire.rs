//! The three wire formats that the scripted server speaks beside
//! `anthropic-messages`: streams of text and calls, and what requests say.

use serde_json::{Value, json};

/// A wire format, told by the path of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Messages,
    Chat,
    Responses,
    Gemini,
}

/// One block of an answer.
pub(crate) enum Piece {
    Text(String),
    Call { id: String, name: String, arguments: Value },
}

impl Wire {
    pub(crate) fn of(headers: &str) -> Wire {
        let line = headers.lines().next().unwrap_or_default();
        match line {
            line if line.contains("/chat/completions") => Wire::Chat,
            line if line.contains("/responses") => Wire::Responses,
            line if line.contains(":streamGenerateContent") => Wire::Gemini,
            _ => Wire::Messages,
        }
    }

    /// The name in `models.json`.
    pub(crate) fn api(self) -> &'static str {
        match self {
            Wire::Messages => "anthropic-messages",
            Wire::Chat => "openai-completions",
            Wire::Responses => "openai-responses",
            Wire::Gemini => "google-generative-ai",
        }
    }

    /// Names of the tools that a request offers.
    pub(crate) fn tools(self, body: &Value) -> Vec<String> {
        let (list, name) = match self {
            Wire::Messages | Wire::Responses => (&body["tools"], "/name"),
            Wire::Chat => (&body["tools"], "/function/name"),
            Wire::Gemini => (&body["tools"][0]["functionDeclarations"], "/name"),
        };
        let names = list.as_array().into_iter().flatten().filter_map(|tool| tool.pointer(name));
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Answers of the model that a request shows.
    pub(crate) fn answers(self, body: &Value) -> usize {
        let list = match self {
            Wire::Messages | Wire::Chat => &body["messages"],
            Wire::Responses => &body["input"],
            Wire::Gemini => &body["contents"],
        };
        let is_answer = |message: &&Value| {
            message["role"] == "assistant"
                || message["role"] == "model"
                || message["type"] == "function_call"
        };
        list.as_array().into_iter().flatten().filter(is_answer).count()
    }

    /// The tool that a request must be answered with.
    pub(crate) fn forced(self, body: &Value) -> Option<&str> {
        let name = match self {
            Wire::Messages | Wire::Responses => &body["tool_choice"]["name"],
            Wire::Chat => &body["tool_choice"]["function"]["name"],
            Wire::Gemini => &body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"][0],
        };
        name.as_str()
    }

    /// A whole stream; `None` for the format that the server writes itself.
    pub(crate) fn stream(self, pieces: &[Piece]) -> Option<String> {
        match self {
            Wire::Messages => None,
            Wire::Chat => Some(chat(pieces)),
            Wire::Responses => Some(responses(pieces)),
            Wire::Gemini => Some(gemini(pieces)),
        }
    }
}

fn has_call(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }))
}

fn chat(pieces: &[Piece]) -> String {
    let mut calls = 0;
    let mut chunks: Vec<Value> = Vec::new();
    for piece in pieces {
        let delta = match piece {
            Piece::Text(text) => json!({"content": text}),
            Piece::Call { id, name, arguments } => {
                calls += 1;
                json!({"tool_calls": [{"index": calls - 1, "id": id, "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()}}]})
            }
        };
        chunks.push(json!({"id": "c", "choices": [{"index": 0, "delta": delta}]}));
    }
    let reason = if has_call(pieces) { "tool_calls" } else { "stop" };
    chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("{lines}data: [DONE]\n\n")
}

fn responses(pieces: &[Piece]) -> String {
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "r", "output": []}})];
    for (place, piece) in pieces.iter().enumerate() {
        let (open, delta, whole) = match piece {
            Piece::Text(text) => {
                let item = |content: Value| {
                    json!({"type": "message", "id": format!("m{place}"), "role": "assistant",
                        "status": "completed", "content": content})
                };
                let delta = json!({"type": "response.output_text.delta", "output_index": place,
                    "content_index": 0, "item_id": format!("m{place}"), "delta": text});
                let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                (item(json!([])), delta, item(content))
            }
            Piece::Call { id, name, arguments } => {
                let item = |arguments: &str| {
                    json!({"type": "function_call", "id": format!("f{place}"), "call_id": id,
                        "name": name, "arguments": arguments})
                };
                let text = arguments.to_string();
                let delta = json!({"type": "response.function_call_arguments.delta",
                    "output_index": place, "item_id": format!("f{place}"), "delta": text});
                (item(""), delta, item(&text))
            }
        };
        events.push(
            json!({"type": "response.output_item.added", "output_index": place, "item": open}),
        );
        events.push(delta);
        events.push(
            json!({"type": "response.output_item.done", "output_index": place, "item": whole}),
        );
    }
    events.push(json!({"type": "response.completed",
        "response": {"id": "r", "status": "completed", "output": []}}));
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

fn gemini(pieces: &[Piece]) -> String {
    let part = |piece: &Piece| match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Call { name, arguments, .. } => {
            json!({"functionCall": {"name": name, "args": arguments}})
        }
    };
    let parts: Vec<Value> = pieces.iter().map(part).collect();
    let content = json!({"role": "model", "parts": parts});
    let chunk = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
    format!("data: {chunk}\n\n")
}

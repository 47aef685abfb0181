"""Talks to `steersman lsp` with an independent client. The program is in the variable STEERSMAN_PROGRAM."""

import os
import pathlib

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

MAIN = """\
import: [tools.yaml]
state:
  balance: { type: integer, default: 50000 }
agents:
  desk:
    system: You send money. There are {{ state.balance }} cents.
    tools: [send_money]
entry: desk
"""

TOOLS = """\
tools:
  send_money:
    description: Sends money.
    parameters: { cents: { type: integer, minimum: 1 } }
    effect: pure
    requires: args.cents <= state.balance
    result: sent
"""


@pytest_lsp.fixture(
    params=["neovim", "visual_studio_code"],
    config=ClientServerConfig(server_command=[os.environ["STEERSMAN_PROGRAM"], "lsp"]),
)
async def client(request, lsp_client: LanguageClient, tmp_path):
    (tmp_path / "steersman.yaml").write_text(MAIN)
    (tmp_path / "tools.yaml").write_text(TOOLS)
    lsp_client.folder = tmp_path
    result = await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=client_capabilities(request.param), root_uri=tmp_path.as_uri()
        )
    )
    lsp_client.offered = result.capabilities
    yield
    await lsp_client.shutdown_session()


def uri(client, name):
    return (client.folder / name).as_uri()


async def opened(client, name="steersman.yaml", text=MAIN):
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            text_document=types.TextDocumentItem(
                uri=uri(client, name), language_id="yaml", version=1, text=text
            )
        )
    )
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)


async def changed(client, text, version=2):
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(
                uri=uri(client, "steersman.yaml"), version=version
            ),
            content_changes=[types.TextDocumentContentChangeWholeDocument(text=text)],
        )
    )
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)


def codes(client, name="steersman.yaml"):
    """The codes of errors and warnings, without notes."""
    found = client.diagnostics.get(uri(client, name), [])
    return [one.code for one in found if one.severity != types.DiagnosticSeverity.Information]


def at(client, text, mark, inside=1, name="steersman.yaml"):
    """The parameters for a place: some characters into the first occurrence of a text."""
    start = text.index(mark) + inside
    line = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1)
    return {
        "text_document": types.TextDocumentIdentifier(uri=uri(client, name)),
        "position": types.Position(line=line, character=column),
    }


@pytest.mark.asyncio
async def test_capabilities(client):
    offered = client.offered
    assert offered.hover_provider and offered.definition_provider
    assert offered.references_provider and offered.completion_provider
    assert offered.rename_provider.prepare_provider
    assert list(offered.code_action_provider.code_action_kinds) == ["quickfix"]
    assert offered.text_document_sync.change == types.TextDocumentSyncKind.Incremental


@pytest.mark.asyncio
async def test_diagnostics_follow_typing(client):
    await opened(client)
    assert codes(client) == []
    await changed(client, MAIN.replace("[send_money]", "[send_mony]"))
    assert "E0201" in codes(client)
    await changed(client, "agents: [", 3)
    assert codes(client) == ["E0101"]
    await changed(client, MAIN, 4)
    assert codes(client) == []


@pytest.mark.asyncio
async def test_ranges_change(client):
    await opened(client)
    line = MAIN[: MAIN.index("    system")].count("\n")
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(
                uri=uri(client, "steersman.yaml"), version=2
            ),
            content_changes=[
                types.TextDocumentContentChangePartial(
                    range=types.Range(
                        start=types.Position(line=line, character=6),
                        end=types.Position(line=line, character=7),
                    ),
                    text="",
                )
            ],
        )
    )
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert codes(client) == ["E0105"]


@pytest.mark.asyncio
async def test_close_save_and_watched_files(client):
    await opened(client)
    named = types.TextDocumentIdentifier(uri=uri(client, "steersman.yaml"))
    (client.folder / "tools.yaml").write_text("tools: {}\n")
    event = types.FileEvent(uri=uri(client, "tools.yaml"), type=types.FileChangeType.Changed)
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes=[event]))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert "E0201" in codes(client)
    (client.folder / "tools.yaml").write_text(TOOLS)
    client.text_document_did_save(types.DidSaveTextDocumentParams(text_document=named))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert codes(client) == []
    await changed(client, "agents: [")
    client.text_document_did_close(types.DidCloseTextDocumentParams(text_document=named))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert codes(client) == []


@pytest.mark.asyncio
async def test_completion(client):
    await opened(client)
    text = MAIN.replace("    tools", "    \n    tools")
    await changed(client, text)
    where = at(client, text, "cents.\n    ", len("cents.\n    "))
    keys = await client.text_document_completion_async(types.CompletionParams(**where))
    labels = [item.label for item in keys.items]
    assert "model" in labels and "system" not in labels
    # an expression that is not closed yet
    text = MAIN.replace("{{ state.balance }} cents.", "{{ state.")
    await changed(client, text, 3)
    where = at(client, text, "{{ state.", len("{{ state."))
    names = await client.text_document_completion_async(types.CompletionParams(**where))
    assert [item.label for item in names.items] == ["balance"]


@pytest.mark.asyncio
async def test_hover(client):
    await opened(client)
    key = await client.text_document_hover_async(types.HoverParams(**at(client, MAIN, "system:")))
    assert "The system prompt." in key.contents.value
    tool = await client.text_document_hover_async(types.HoverParams(**at(client, MAIN, "send_money")))
    assert "Sends money." in tool.contents.value


@pytest.mark.asyncio
async def test_definition_and_references(client):
    await opened(client)
    where = at(client, MAIN, "[send_money", 3)
    [there] = await client.text_document_definition_async(types.DefinitionParams(**where))
    assert there.uri == uri(client, "tools.yaml")
    assert there.range.start == types.Position(line=1, character=2)
    where = at(client, MAIN, "balance:", 3)
    for declared, count in [(True, 3), (False, 2)]:
        context = types.ReferenceContext(include_declaration=declared)
        params = types.ReferenceParams(context=context, **where)
        found = await client.text_document_references_async(params)
        assert len(found) == count


@pytest.mark.asyncio
async def test_rename(client):
    await opened(client)
    where = at(client, MAIN, "[send_money", 3)
    prepared = await client.text_document_prepare_rename_async(types.PrepareRenameParams(**where))
    assert prepared.placeholder == "send_money"
    params = types.RenameParams(new_name="pay", **where)
    edit = await client.text_document_rename_async(params)
    assert sorted(pathlib.Path(file).name for file in edit.changes) == ["steersman.yaml", "tools.yaml"]
    with pytest.raises(JsonRpcException, match="is no name"):
        await client.text_document_rename_async(types.RenameParams(new_name="Pay now", **where))


@pytest.mark.asyncio
async def test_code_action(client):
    text = MAIN.replace("system:", "sytem:")
    await opened(client, text=text)
    where = at(client, text, "sytem")
    params = types.CodeActionParams(
        text_document=where["text_document"],
        range=types.Range(start=where["position"], end=where["position"]),
        context=types.CodeActionContext(diagnostics=[]),
    )
    [action] = await client.text_document_code_action_async(params)
    assert action.title == "did you mean `system`?"
    assert action.kind == types.CodeActionKind.QuickFix
    [change] = action.edit.changes[uri(client, "steersman.yaml")]
    assert change.new_text == "system"

// Ghost text: the client library's provider with pauses, latency and offers that are typed into.

import {
  type CancellationToken,
  Disposable,
  InlineCompletionItem,
  InlineCompletionList,
  InlineCompletionTriggerKind,
  type Position,
  Range,
  type TextDocument,
  workspace,
} from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import type { Pauses } from "./pauses.ts";
import { followed, isAt, type Offer } from "./text/offer.ts";

type Provide = NonNullable<Middleware["provideInlineCompletionItems"]>;
type Given = InlineCompletionItem[] | InlineCompletionList | null | undefined;

export class GhostText implements Disposable {
  readonly #offers = new Map<string, Offer<InlineCompletionItem>>();
  readonly #watching: Disposable;

  /**
   * @param reuses whether an offer that still fits is shown again without asking the server
   * @param answered told of the milliseconds that an answer took
   */
  constructor(
    private readonly pauses: Pauses,
    private readonly reuses: () => boolean,
    private readonly answered: (milliseconds: number) => void,
  ) {
    this.#watching = Disposable.from(
      workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        const uri = document.uri.toString();
        const offer = this.#offers.get(uri);
        if (offer === undefined) return;
        const changes = contentChanges.map(({ range, rangeLength, text }) => ({
          startLine: range.start.line,
          startCharacter: range.start.character,
          removed: rangeLength,
          text,
        }));
        const next = followed(offer, changes, document.version);
        if (next === undefined) this.#offers.delete(uri);
        else this.#offers.set(uri, next);
      }),
      workspace.onDidCloseTextDocument(({ uri }) => this.#offers.delete(uri.toString())),
    );
  }

  dispose(): void {
    this.#watching.dispose();
  }

  /** Forget every offer; the next question goes to the server. */
  forget(): void {
    this.#offers.clear();
  }

  readonly provide: Provide = async (document, position, context, token, next) => {
    const uri = document.uri.toString();
    if (this.pauses.of(uri, document.languageId) !== undefined) return null;
    const typing = context.triggerKind === InlineCompletionTriggerKind.Automatic;
    if (typing && context.selectedCompletionInfo === undefined && this.reuses()) {
      const offer = this.#offers.get(uri);
      if (offer && isAt(offer, document.version, position.line, position.character)) {
        return itemsOf(offer, position);
      }
    }
    const { version } = document;
    const began = performance.now();
    const given = await next(document, position, context, token);
    const took = performance.now() - began;
    if (!isWanted(document, version, token)) return given;
    const items = listOf(given);
    if (items.length > 0) this.answered(took);
    this.#keep(document, position, items);
    return given;
  };

  #keep(document: TextDocument, position: Position, items: readonly InlineCompletionItem[]): void {
    const choices = items.flatMap((item) =>
      typeof item.insertText === "string" && (item.range?.isEmpty ?? true)
        ? [{ text: item.insertText, item }]
        : [],
    );
    const uri = document.uri.toString();
    const { line, character } = position;
    if (choices.length > 0) {
      this.#offers.set(uri, { version: document.version, line, character, choices });
    } else {
      this.#offers.delete(uri);
    }
  }
}

function itemsOf(offer: Offer<InlineCompletionItem>, position: Position): InlineCompletionList {
  const at = new Range(position, position);
  return new InlineCompletionList(
    offer.choices.map(({ text, item }) => new InlineCompletionItem(text, at, item.command)),
  );
}

function listOf(given: Given): readonly InlineCompletionItem[] {
  if (!given) return [];
  return Array.isArray(given) ? given : given.items;
}

function isWanted(document: TextDocument, version: number, token: CancellationToken): boolean {
  return !token.isCancellationRequested && document.version === version;
}

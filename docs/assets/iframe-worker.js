// Browsers start no workers from files. For a site that is read from a folder, the worker of its search is a script in a
// hidden frame of the page, which gets its messages and sends them as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      this.scope = this.frame.contentWindow
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = this.scope.document.createElement("script")
      this.started = new Promise((resolve, reject) => {
        script.onload = resolve
        script.onerror = () => reject(new Error(`${url} cannot be read`))
      })
      script.src = url
      this.scope.document.body.append(script)
    }

    async postMessage(data) {
      await this.started
      this.scope.dispatchEvent(new MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
